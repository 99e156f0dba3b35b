"""The explanations of random programs equal their runs."""

import collections
import random

import jax
import pytest

import jupyter_jaxcb as jaxcb
from tests.differential._compare import OURS
from tests.differential._interpret import Interpreter
from tests.differential._strategy import drawn

from ._same import alone, check_calls, reported

pytestmark = pytest.mark.slow

SEEDS = range(25)  # `make fuzz` asks of many more


@pytest.mark.filterwarnings("ignore::jupyter_jaxcb.JaxInHostFunctionWarning")
@pytest.mark.parametrize("seed", SEEDS)
@alone
def test_a_random_program_is_explained_as_its_run_is_recorded(seed):
    program = drawn(random.Random(seed))
    if program.x64:  # of the whole process
        program = drawn(random.Random(seed + 10_000))
    explained, refused = None, None
    asked = Interpreter(program, OURS)
    try:
        explained = jaxcb.explain(asked.function())(asked.start())
    except Exception as error:
        refused = error
    assert not asked.calls
    runs = Interpreter(program, OURS)
    function = runs.function()
    function = function if hasattr(function, "lower") else jax.jit(function)
    failed = None
    with jaxcb.record() as recorded:
        try:
            jax.block_until_ready(function(runs.start()))
        except Exception as error:
            failed = error
    assert type(refused) is type(failed)
    if refused is None:
        assert reported(explained) == reported(recorded.recording)
        check_calls(explained, collections.Counter(call[0] for call in runs.calls))
