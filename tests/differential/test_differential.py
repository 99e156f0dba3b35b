"""Random programs do the same with our callbacks as with JAX's: same values, same host calls."""

import itertools
import os
import random

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from . import _coverage
from ._compare import disagreement
from ._programs import FLAVORS, METHODS, NESTS
from ._shrink import shrunk
from ._strategy import drawn, programs

EXAMPLES = int(os.environ.get("JAXCB_FUZZ_EXAMPLES", "200"))
RANDOM = os.environ.get("JAXCB_FUZZ_RANDOM") == "1"  # other programs on every run
CONTROL = [nest for nest in NESTS if nest not in ("grad", "jvp", "checkpoint")]


MAX_EXTRA = 400  # programs drawn beyond EXAMPLES to meet what is missing


def _missing():
    """Combinations that no program which JAX ran has had; what it refused does not count."""
    wanted = set(itertools.product(CONTROL, FLAVORS))
    wanted |= {("vmap", f"pure {method}") for method in METHODS}
    return sorted(wanted - set(_coverage.ran))


def _disagrees(program):
    return disagreement(program)[1] is not None


@pytest.fixture(scope="module")
def found():
    """What was seen on the drawn programs: nothing, or one disagreement in words."""
    disagreements = []

    def compare(program):
        if disagreements:
            return
        outcome, difference = disagreement(program)
        _coverage.count(program, outcome.error)
        if difference is not None:
            smallest = shrunk(program, _disagrees)
            disagreements.append(f"{difference}\n{program}\n{disagreement(smallest)}\n{smallest}")

    draw = settings(
        max_examples=EXAMPLES,
        derandomize=not RANDOM,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    draw(given(programs())(compare))()
    for seed in range(MAX_EXTRA):
        if not _missing():
            break
        compare(drawn(random.Random(seed)))
    return "\n".join(disagreements)


def test_random_programs_do_the_same_with_ours_as_with_jax(found):
    assert not found, found


def test_every_transformation_met_every_flavor(found):
    assert not _missing(), "\n".join([f"never drawn: {_missing()}", *_coverage.table()])
