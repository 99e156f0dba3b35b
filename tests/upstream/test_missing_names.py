"""Callbacks run with right results without any optional private name of JAX, tried one by one.

`private.txt` says what is lost without each. Without a required name the import fails.
"""

from pathlib import Path

import jax
import pytest

from . import without
from .private import names

PROGRAM = Path(without.__file__)
FILES = sorted({name.files[0] for name in names() if not name.is_compiled})
VERSIONS = "Install JAX 0.10.0 to 0.12.0, or a newer jupyter_jaxcb."
# What these programs show of what is lost, by the words of the table; of anything else, nothing.
LOST = {
    "removed callbacks": {
        "statuses": [[["kept", 2]], 1, "unknown, except of callbacks that ran"],
        "explains": f"RuntimeError: cannot explain programs of JAX {jax.__version__}: it compiles "
        f"them in another way. {VERSIONS}",
    },
    "statuses": {
        "statuses": [[["kept", 2], ["unknown", 0], ["unused", 0]], 1, ""],
        "explains": ["unknown", "unused"],
    },
    "hoisting": {"hoisting": [["hoisted", 1]]},
    "ordered predicates": {"orders": [3.5, [0, 1, 2], "cannot vmap a while loop that calls the "]},
}


@pytest.fixture(scope="module")
def complete(in_process):
    """Return what callbacks do if nothing is missing."""
    observed = in_process(PROGRAM).value
    assert [kind for kind, one in observed.items() if "Error" in str(one)] == ["cause"]
    return observed


@pytest.mark.upstream
@pytest.mark.parametrize("file", FILES)
def test_each_name_is_required_or_has_a_fallback(file, in_process, complete):
    for path, observed in in_process(PROGRAM, file, seconds=600).value.items():
        name, _ = without.names_of(file)[path]
        if name.is_required:
            assert name.word in observed, f"the import works without {path}"
            assert (
                f"ImportError: jupyter_jaxcb does not support JAX {jax.__version__}: " in observed
            )
            assert observed.endswith(VERSIONS)
            continue
        if name.lost == "observing":
            refused = observed.pop("observes")
            assert f"cannot observe the callbacks of JAX {jax.__version__}: " in refused, path
            assert refused.endswith(VERSIONS)
        expected = dict(complete)
        for lost in name.lost.split(" and "):
            expected |= LOST.get(lost, {})
        assert observed == {kind: expected[kind] for kind in observed}, path


def test_words_of_what_is_lost_are_those_of_the_table():
    assert set(LOST) <= {lost for name in names() for lost in name.lost.split(" and ")}
