"""State of io functions whose calls leave the process is reported when they are registered."""

import collections
import concurrent.futures
import functools
import itertools
import logging
import random
import sys
import threading
import warnings

import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.interface import forget_warnings_of_lint

from ._correct import CORRECT

pytestmark = pytest.mark.kept
TOTAL = 0
LAST = None
SCALE = 3.0
TABLE = np.linspace(0.0, 1.0, 11)
COUNTS = {"calls": 0}
SEEN = []
SUMS = np.zeros(3)
RECENT = collections.deque(maxlen=3)
NUMBERS = itertools.count()
GENERATOR = np.random.default_rng(0)
RANDOM = random.Random(0)
CACHE = {}
LOCAL = threading.local()
LOGGER = logging.getLogger(__name__)
WEIGHTS = {"a": 2.0, "b": [1.0, 2.0]}


class Model:
    calls = 0

    def __init__(self):
        self.steps, self.scale = 0, 2.0

    def step(self, x):
        self.steps += 1
        return x

    def scaled(self, x):
        return self.scale * x


MODEL = Model()


def global_sum(x):
    global TOTAL
    TOTAL += x.sum()
    return x + TOTAL


def global_name(x):
    global LAST
    before, LAST = LAST, x
    return x if before is None else x - before


def item(x):
    COUNTS["calls"] += 1
    return x


def plain_item(x):
    before = COUNTS["calls"]
    COUNTS["calls"] = before + 1
    return x + before


def counted_with_get(x):
    COUNTS["calls"] = COUNTS.get("calls", 0) + 1
    return x


def item_of_a_key(x):
    COUNTS[float(x.sum())] = x
    return x


def element(x):
    SUMS[0] = SUMS[1] + 1
    return x


def whole_array(x):
    SUMS[:] = x
    return x


def array_in_place(x):
    np.add(SUMS, x, out=SUMS)
    return x


def appends(x):
    SEEN.append(x)
    return x


def pops(x):
    last = SEEN.pop() if SEEN else 0
    return x + last


def adds_to_a_deque(x):
    RECENT.appendleft(x)
    return np.mean(RECENT, axis=0)


def attribute(x):
    MODEL.steps += 1
    return x


def sets_an_attribute(x):
    MODEL.last = x
    return x


def attribute_of_a_class(x):
    Model.calls = Model.calls + 1
    return x


def next_number(x):
    return x + next(NUMBERS)


def draws(x):
    return x + GENERATOR.normal()


def draws_with_random(x):
    return x + RANDOM.random()


def in_a_closure():
    count = 0

    def counts(x):
        nonlocal count
        count += 1
        return x + count

    return counts


STATE = [
    global_sum, global_name, item, plain_item, counted_with_get, item_of_a_key, element,
    whole_array, array_in_place, appends, pops, adds_to_a_deque, attribute, sets_an_attribute,
    attribute_of_a_class, next_number, draws, draws_with_random, in_a_closure(), MODEL.step,
    functools.partial(item),
]  # fmt: skip


def reads_constants(x):
    return SCALE * x + TABLE[3] + WEIGHTS["a"] + sum(WEIGHTS["b"])


def reads_an_attribute(x):
    return MODEL.scale * x + Model.calls


def caches(x):
    key = x.tobytes()
    if key not in CACHE:
        CACHE[key] = np.sin(x)
    return CACHE[key]


def caches_with_get(x):
    key = x.tobytes()
    found = CACHE.get(key)
    if found is None:
        found = CACHE[key] = np.sin(x)
    return found


def prints(x):
    print(x)
    sys.stdout.write("saw")
    LOGGER.info("saw %s", x)
    return x


def keeps_in_its_thread(x):
    LOCAL.x = x
    return LOCAL.x


def own_variables(x):
    counts, seen, SUMS = {"calls": 0}, [], np.zeros(3)
    counts["calls"] += 1
    seen.append(x)
    SUMS[0] = 1
    return x + SUMS.sum()


def draws_its_own(x):
    return x + np.random.default_rng(0).normal() + np.random.rand()


NO_STATE = [
    reads_constants, reads_an_attribute, caches, caches_with_get, prints, keeps_in_its_thread,
    own_variables, draws_its_own, MODEL.scaled, np.sin, functools.partial(np.power, 2),
    lambda x: x + SCALE,
]  # fmt: skip


def registered(function, executor="processes"):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jaxcb.io(function, result=lambda *args: args[0], executor=executor)
    return [one for one in caught if one.category is jaxcb.WorkerStateWarning]


def name_of(function):
    return getattr(function, "__name__", type(function).__name__)


@pytest.fixture(autouse=True)
def _not_warned_before(monkeypatch):
    """A function is warned of once."""
    forget_warnings_of_lint(monkeypatch)


@pytest.mark.parametrize("function", STATE, ids=name_of)
def test_state_that_the_source_shows_is_named(function):
    (one,) = registered(function)
    assert one.filename == __file__
    text = str(one.message)
    assert "keeps state between calls (" in text and f", test_worker_state.py:{one.lineno})" in text
    assert "executor='processes' makes them in other processes" in text


def test_line_and_name_are_those_of_the_state():
    (one,) = registered(global_sum)
    assert one.lineno == global_sum.__code__.co_firstlineno + 2
    assert str(one.message).startswith(
        "the io callback global_sum keeps state between calls (TOTAL,"
    )


TABLE, POOL = None, []


def loads_once(x):
    global TABLE
    if TABLE is None:
        TABLE = np.float32(2)
    return x * TABLE


def fills_once(x):
    if not POOL:
        POOL.append(object())
    return x


def counts_after_loading(x):
    global TABLE
    if TABLE is None:
        TABLE = 0
    TABLE += 1
    return x


@pytest.mark.parametrize("function", [loads_once, fills_once], ids=name_of)
def test_what_each_worker_loads_once_is_no_state(function):
    assert registered(function) == []


def test_what_changes_after_it_was_loaded_is_state():
    (one,) = registered(counts_after_loading)
    assert one.lineno == counts_after_loading.__code__.co_firstlineno + 4


@pytest.mark.parametrize("function", NO_STATE, ids=name_of)
def test_function_without_state_causes_no_warning(function):
    assert registered(function) == []


@pytest.mark.parametrize("correct", CORRECT.values(), ids=CORRECT)
def test_typical_function_causes_no_warning(correct):
    assert registered(correct.function) == []


@pytest.mark.parametrize("executor", ["dask", "processes:2", "process pool"])
def test_every_executor_of_other_processes_counts(executor):
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        assert len(registered(item, pool if executor == "process pool" else executor)) == 1


@pytest.mark.parametrize("executor", [None, "threads"])
def test_calls_in_this_process_may_keep_state(executor):
    assert registered(item, executor) == []


def test_pure_function_is_told_that_it_is_impure_instead():
    def adds(x):
        SEEN.append(x)
        return x

    with pytest.warns(jaxcb.ImpureFunctionWarning, match="modifies outer state") as caught:
        jaxcb.pure(adds, result="x", executor="processes")
    assert len(caught) == 1
