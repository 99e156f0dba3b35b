"""Random programs do the same with our callbacks as with JAX's: same values, same host calls."""

import itertools
import os

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings

from . import _coverage
from ._compare import disagreement
from ._programs import FLAVORS, METHODS, NESTS
from ._shrink import shrunk
from ._strategy import programs

EXAMPLES = int(os.environ.get("JAXCB_FUZZ_EXAMPLES", "200"))
RANDOM = os.environ.get("JAXCB_FUZZ_RANDOM") == "1"  # other programs on every run
CONTROL = [nest for nest in NESTS if nest not in ("grad", "jvp", "checkpoint")]


def _disagrees(program):
    return disagreement(program)[1] is not None


@pytest.fixture(scope="module")
def found():
    """What was seen on the drawn programs: nothing, or one disagreement in words."""
    disagreements = []

    @settings(
        max_examples=EXAMPLES,
        derandomize=not RANDOM,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def compare(program):
        assume(not disagreements)
        outcome, difference = disagreement(program)
        _coverage.count(program, outcome.error)
        if difference is not None:
            smallest = shrunk(program, _disagrees)
            disagreements.append(f"{difference}\n{program}\n{disagreement(smallest)}\n{smallest}")

    compare()
    return "\n".join(disagreements)


def test_random_programs_do_the_same_with_ours_as_with_jax(found):
    assert not found, found


@pytest.mark.skipif(EXAMPLES < 200, reason="too few programs for every combination")
def test_every_transformation_met_every_flavor(found):
    """Among the programs that JAX ran; what it refused does not count."""
    wanted = set(itertools.product(CONTROL, FLAVORS))
    wanted |= {("vmap", f"pure {method}") for method in METHODS}
    missing = sorted(wanted - set(_coverage.ran))
    assert not missing, "\n".join([f"never drawn: {missing}", *_coverage.table()])
