"""Callbacks run with right results without any optional private name of JAX, tried one by one.

What is lost is listed here, and said beside each use. Without a required name the import fails.
"""

from pathlib import Path

import jax
import pytest

from . import _rename, without
from ._tree import Tree
from ._uses import uses

PROGRAM = Path(without.__file__)
FILES = sorted({use.file for use in uses()})
REFUSED = "cannot vmap a while loop that calls the "
VERSIONS = "Install JAX 0.8.0 to 0.12.0, or a newer jupyter_jaxcb."

NO_PROGRAMS = {
    "statuses": [[["kept", 2]], 1, "unknown, except of callbacks that ran"],
    "explains": f"RuntimeError: cannot explain programs of JAX {jax.__version__}: it compiles them "
    f"in another way. {VERSIONS}",
}
HOISTED = {"hoisting": [1, ["hoisted"]]}
NO_LOOPS = {"orders": [3.5, [0, 1, 2], REFUSED]}
# What changes without a name; with the others nothing does in these programs.
LOST = {
    "jax._src.interpreters.pxla": NO_PROGRAMS,
    "jax._src.interpreters.pxla.MeshComputation": NO_PROGRAMS,
    "jax._src.interpreters.pxla.MeshComputation.compile": NO_PROGRAMS,
    "jax._src.interpreters.pxla.lower_sharding_computation": NO_PROGRAMS,
    "jax._src.interpreters.pxla.MeshExecutable.xla_executable": {
        "statuses": [[["kept", 2], ["unknown", 0], ["unused", 0]], 1, ""],
        "explains": ["unknown", "unused"],
    },
    "jax._src.interpreters.partial_eval": HOISTED,
    "jax._src.interpreters.partial_eval.JaxprTrace": HOISTED,
    "jax._src.interpreters.partial_eval.JaxprTrace.default_process_primitive": HOISTED,
    "jax._src.interpreters.partial_eval.JaxprTrace.instantiate_const": HOISTED,
    "jax._src.interpreters.partial_eval.custom_partial_eval_rules": HOISTED,
    "jax._src.lax.control_flow.loops._scan_known_hoisting": HOISTED,
    "jax._src.lax.control_flow.loops": NO_LOOPS,
    "jax._src.lax.control_flow.loops._while_lowering": NO_LOOPS,
    "jax._src.lax.control_flow.loops.while_p": NO_LOOPS,
    "jax._src.core.jaxpr_as_fun": NO_LOOPS,
    "jax._src.core.subjaxprs": NO_LOOPS,
}


@pytest.fixture(scope="module")
def required():
    found = _rename.names(Tree(Path(jax.__file__).parents[1]), uses())
    return {name for name, used in found.items() if any(use.is_required for use in used)}


@pytest.fixture(scope="module")
def complete(in_process):
    """Return what callbacks do if nothing is missing."""
    (observed,) = in_process(PROGRAM).value.values()
    assert [kind for kind, one in observed.items() if "Error" in str(one)] == ["cause"]
    return observed


@pytest.mark.upstream
@pytest.mark.parametrize("file", FILES)
def test_each_name_is_required_or_has_a_fallback(file, in_process, complete, required):
    found = in_process(PROGRAM, file, seconds=600).value
    assert found
    for name, observed in found.items():
        if name in required:
            assert isinstance(observed, str), f"the import works without {name}"
            assert observed.startswith(
                f"ImportError: jupyter_jaxcb does not support JAX {jax.__version__}: "
            ), (name, observed)
            assert observed.endswith(VERSIONS)
            assert name.rpartition(".")[2] in observed
        else:
            expected = {**complete, **LOST.get(name, {})}
            refuses(observed)
            assert observed == {kind: expected[kind] for kind in observed}, name


def refuses(observed):
    """Drop JAX's own callbacks from what was observed, if observing them was refused in words."""
    words = observed["observes"]
    if isinstance(words, str):
        assert words.startswith(
            f"RuntimeError: cannot observe the callbacks of JAX {jax.__version__}: "
        )
        assert words.endswith(VERSIONS)
        del observed["observes"]


def test_lost_names_exist(required):
    names = _rename.names(Tree(Path(jax.__file__).parents[1]), uses())
    assert set(LOST) <= set(names) - required


def test_only_the_module_of_required_names_can_end_the_import(required):
    assert {use.file for use in uses() if use.is_required} == {"_required.py"}
    assert required
