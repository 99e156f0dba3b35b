"""Explanations of random programs equal their runs."""

import collections
import random

import jax
import pytest

import jupyter_jaxcb as jaxcb
from tests.differential._compare import OURS
from tests.differential._interpret import Interpreter
from tests.differential._strategy import drawn

from ._same import check_calls, in_new_thread, sorted_facts

pytestmark = pytest.mark.slow

SEEDS = range(25)


@pytest.mark.filterwarnings("ignore::jupyter_jaxcb.JaxInHostFunctionWarning")
@pytest.mark.parametrize("seed", SEEDS)
@in_new_thread
def test_explanation_of_a_random_program_equals_its_run(seed):
    program = drawn(random.Random(seed))
    if program.x64:  # x64 would have to be enabled for the whole process
        program = drawn(random.Random(seed + 10_000))
    explained, refused = None, None
    to_explain = Interpreter(program, OURS)
    try:
        explained = jaxcb.explain(to_explain.function())(to_explain.start())
    except Exception as error:
        refused = error
    assert not to_explain.calls
    to_run = Interpreter(program, OURS)
    function = to_run.function()
    function = function if hasattr(function, "lower") else jax.jit(function)
    failed = None
    with jaxcb.record() as recorded:
        try:
            jax.block_until_ready(function(to_run.start()))
        except Exception as error:
            failed = error
    assert type(refused) is type(failed)
    if refused is None:
        assert sorted_facts(explained) == sorted_facts(recorded.recording)
        check_calls(explained, collections.Counter(call[0] for call in to_run.calls))
