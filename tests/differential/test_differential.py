"""Random programs give the same values and make the same host calls with ours as with JAX's."""

import itertools
import os
import random

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from . import _coverage
from ._compare import QUEUED, disagreement
from ._masked import JAX_MASKED, OURS_MASKED
from ._programs import METHODS, sites
from ._shrink import shrunk
from ._strategy import DTYPES, drawn, programs

pytestmark = pytest.mark.slow

# The tests below draw more programs until every combination has been called, see `_missing`.
EXAMPLES = int(os.environ.get("JAXCB_FUZZ_EXAMPLES", "30"))
RANDOM = os.environ.get("JAXCB_FUZZ_RANDOM") == "1"  # draw different programs in every run
MAX_EXTRA = 4000  # programs searched, beyond EXAMPLES, for missing combinations
IMPOSSIBLE = {("vmap", "ordered io")}  # JAX refuses this combination


def _missing():
    """Return the combinations in which no callback was called; refused programs do not count."""
    required = set(itertools.product(_coverage.ROWS, _coverage.FLAVORS)) - IMPOSSIBLE
    required |= {("vmap", f"pure {method}") for method in METHODS}
    return required - set(_coverage.called)


def _disagrees(program):
    return disagreement(program)[1] is not None


@pytest.fixture(scope="module")
def found():
    """A description of the first disagreement among the drawn programs, or an empty string."""
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
    # First the programs that have several missing combinations, so that few programs suffice.
    for least, tries in ((4, 300), (2, 300), (1, MAX_EXTRA)):
        for program in map(drawn, map(random.Random, range(tries))):
            missing = _missing()
            if disagreements or not missing:
                break
            if len(_coverage.combinations(program) & missing) >= least:
                compare(program)
    return "\n".join(disagreements)


def test_random_programs_behave_the_same_with_ours_as_with_jax(found):
    assert not found, found


def test_queued_debug_callbacks_are_called_as_those_of_jax():
    found, draws = [], map(drawn, map(random.Random, itertools.count()))
    with_debug = (p for p in draws if any(c.flavor == "debug" for c, _ in sites(p.block)))
    for program in itertools.islice(with_debug, EXAMPLES // 2):
        outcome, difference = disagreement(program, QUEUED)
        found.append((outcome.error is None, len(outcome.calls)))
        assert difference is None, f"{difference}\n{program}"
    assert sum(calls for completed, calls in found if completed) > EXAMPLES


def test_masked_calls_are_made_where_the_host_function_of_jax_would_test_the_mask():
    found, calls = [], 0
    for program in itertools.islice(map(drawn, map(random.Random, itertools.count())), EXAMPLES):
        outcome, difference = disagreement(program, OURS_MASKED, JAX_MASKED)
        found += [f"{difference}\n{program}"] if difference else []
        calls += len(outcome.calls)
    assert not found, found
    assert calls > EXAMPLES


def test_every_flavor_was_called_under_every_transformation(found):
    assert not _missing(), "\n".join([f"never called: {sorted(_missing())}", *_coverage.table()])


def test_every_dtype_was_drawn(found):
    assert set(_coverage.dtypes) == set(itertools.chain(*DTYPES)), _coverage.table()
