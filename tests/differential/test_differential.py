"""Random programs do the same with our callbacks as with JAX's: same values, same host calls."""

import itertools
import os
import random

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from . import _coverage
from ._compare import disagreement
from ._programs import METHODS
from ._shrink import shrunk
from ._strategy import DTYPES, drawn, programs

pytestmark = pytest.mark.slow

# What has to be met is met in any case, see `_missing`; mistakes are planted to show in 40.
EXAMPLES = int(os.environ.get("JAXCB_FUZZ_EXAMPLES", "30"))
RANDOM = os.environ.get("JAXCB_FUZZ_RANDOM") == "1"  # other programs on every run
MAX_EXTRA = 4000  # programs drawn beyond EXAMPLES for what is missing; few have it
IMPOSSIBLE = {("vmap", "ordered io")}  # JAX refuses


def _missing():
    """Combinations in which no drawn callback was called; what JAX refused does not count."""
    wanted = set(itertools.product(_coverage.ROWS, _coverage.FLAVORS)) - IMPOSSIBLE
    wanted |= {("vmap", f"pure {method}") for method in METHODS}
    return wanted - set(_coverage.called)


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
        _coverage.count(program, outcome)
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
    # Those that have much of it first: then few are enough.
    for least, tries in ((4, 300), (2, 300), (1, MAX_EXTRA)):
        for program in map(drawn, map(random.Random, range(tries))):
            missing = _missing()
            if disagreements or not missing:
                break
            if len(_coverage.combinations(program) & missing) >= least:
                compare(program)
    return "\n".join(disagreements)


def test_random_programs_do_the_same_with_ours_as_with_jax(found):
    assert not found, found


def test_every_transformation_met_every_flavor(found):
    assert not _missing(), "\n".join([f"never called: {sorted(_missing())}", *_coverage.table()])


def test_every_dtype_was_drawn(found):
    assert set(_coverage.dtypes) == set(itertools.chain(*DTYPES)), _coverage.table()
