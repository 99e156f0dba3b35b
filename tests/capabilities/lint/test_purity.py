"""Obvious side effects of a pure function are reported when it is registered."""

import datetime
import logging
import random
import sys
import time
import types
import uuid
import warnings
from datetime import date

import numpy as np
import pytest
from numpy.random import default_rng

import jupyter_jaxcb as jaxcb

TOTAL = 0
COUNTS = {"calls": 0}
GENERATOR = np.random.default_rng(0)
LOGGER = logging.getLogger(__name__)


def prints(x):
    print("saw", x)
    return x


def prints_inside(x):
    def show(value):
        print(value)

    show(x)
    return x


def writes_to_stdout(x):
    sys.stdout.write("saw")
    return x


def writes_to_stderr(x):
    sys.stderr.write("saw")
    return x


def prints_twice(x):
    print("saw", x)
    print("saw", x)
    return x


def logs(x):
    LOGGER.info("saw %s", x)
    return x


def opens(x):
    with open("table.txt") as file:
        return x * len(file.read())


def saves(x):
    np.save("x.npy", x)
    return x


def draws_with_random(x):
    return x * random.random()


def draws_with_numpy(x):
    return x + np.random.rand()


def draws_with_a_generator(x):
    return x + GENERATOR.normal()


def draws_without_a_seed(x):
    rng = default_rng()
    return x + rng.normal()


def makes_a_uuid(x):
    return x * len(str(uuid.uuid4()))


def reads_the_time(x):
    return x * time.perf_counter()


def reads_the_date(x):
    return x * datetime.datetime.now().year


def reads_today(x):
    return x * date.today().year


def writes_a_global(x):
    global TOTAL
    TOTAL = TOTAL + 1
    return x


def counts_in_a_dict(x):
    COUNTS["calls"] += 1
    return x


def writes_an_item(x):
    x[0] = 1
    return x


def adds_in_place(x):
    x += 1
    return x


def sorts_in_place(x):
    x.sort()
    return x


def writes_with_out(x):
    return np.add(x, 1, out=x)


LOG = []
SEEN = set()
ARRAY = np.zeros(3)
STATE = types.SimpleNamespace(calls=0)


def keeps_in_a_list(x):
    LOG.append(float(x))
    return x


def keeps_in_a_set(x):
    if x > 0:
        SEEN.add(float(x))
    return x


def fills_an_array(x):
    ARRAY[...] = x
    return x


def sets_an_attribute(x):
    STATE.last = x
    return x


def draws_with_no_seed(x):
    return x + default_rng(None).normal()


def closure():
    count = 0

    def counts_in_a_closure(x):
        nonlocal count
        count += 1
        return x

    return counts_in_a_closure


PLANTED = {  # function: the words of the message, the line below its def, the advice
    prints: ("prints (print,", 1, "jaxcb.debug"),
    prints_inside: ("prints (print,", 2, "jaxcb.debug"),
    writes_to_stdout: ("prints (sys.stdout,", 1, "jaxcb.debug"),
    writes_to_stderr: ("prints (sys.stderr,", 1, "jaxcb.debug"),
    prints_twice: ("prints (print,", 1, "jaxcb.debug"),
    logs: ("prints (LOGGER,", 1, "jaxcb.debug"),
    opens: ("opens a file (open,", 1, "as io"),
    saves: ("opens a file (np.save,", 1, "as io"),
    draws_with_random: ("draws random numbers (random.random,", 1, "as io"),
    draws_with_numpy: ("draws random numbers (np.random.rand,", 1, "as io"),
    draws_with_a_generator: ("draws random numbers (GENERATOR,", 1, "as io"),
    draws_without_a_seed: ("draws random numbers (default_rng(),", 1, "as io"),
    makes_a_uuid: ("draws random numbers (uuid.uuid4,", 1, "as io"),
    reads_the_time: ("reads the clock (time.perf_counter,", 1, "as io"),
    reads_the_date: ("reads the clock (datetime.datetime.now,", 1, "as io"),
    reads_today: ("reads the clock (date.today,", 1, "as io"),
    writes_a_global: ("modifies outer state (TOTAL,", 2, "as io"),
    counts_in_a_dict: ("modifies outer state (COUNTS['calls'],", 1, "as io"),
    keeps_in_a_list: ("modifies outer state (LOG,", 1, "as io"),
    keeps_in_a_set: ("modifies outer state (SEEN,", 2, "as io"),
    fills_an_array: ("modifies outer state (ARRAY[...],", 1, "as io"),
    sets_an_attribute: ("modifies outer state (STATE.last,", 1, "as io"),
    draws_with_no_seed: ("draws random numbers (default_rng(None),", 1, "as io"),
    closure(): ("modifies outer state (count,", 2, "as io"),
    writes_an_item: ("writes into an argument (x[0],", 1, "as buffer"),
    adds_in_place: ("writes into an argument (x,", 1, "as buffer"),
    sorts_in_place: ("writes into an argument (x,", 1, "as buffer"),
    writes_with_out: ("writes into an argument (x,", 1, "as buffer"),
}


@pytest.mark.parametrize("function", PLANTED, ids=lambda function: function.__name__)
def test_impure_function_is_reported_with_its_line_and_the_flavor(function):
    reported, below, flavor = PLANTED[function]
    with pytest.warns(jaxcb.ImpureFunctionWarning) as warned:
        jaxcb.pure(function, result="x")
    (warning,) = warned
    line = function.__code__.co_firstlineno + below
    message = str(warning.message)
    assert f"the pure callback {function.__name__} {reported} test_purity.py:{line})" in message
    assert flavor in message and "\n" not in message
    assert (warning.filename, warning.lineno) == (__file__, line)


def test_reported_function_still_runs_unchanged(capsys):
    with pytest.warns(jaxcb.ImpureFunctionWarning):
        shown = jaxcb.pure(lambda x: print("saw", x) or x, result="x")
    assert float(shown(3.0)) == 3
    assert capsys.readouterr().out == "saw 3.0\n"


class Table:
    def __init__(self):
        self.kept, self.looked = {}, 0

    def __call__(self, x):
        try:
            return self.kept[x.tobytes()]
        except KeyError:
            self.kept[x.tobytes()] = np.sin(x)
        return self.kept[x.tobytes()]


def calls_a_printing_helper(x):
    return prints(x)


def splits_a_text(x, mode, times=1):
    left, *_ = mode.partition(":")
    mode += "_done"
    times += 1
    return x if left else -x * times


def uses_local_lists(x, tree):
    found = []
    found.append(x)
    tree["all"].append(x)
    return found[0]


def without_source():
    exec("def host(x):\n print(x)\n return x", names := {})
    return names["host"]


@pytest.mark.parametrize(
    "function",
    [Table(), calls_a_printing_helper, splits_a_text, uses_local_lists, without_source()],
    ids=["cache", "helper", "text", "lists", "no source"],
)
def test_what_no_later_call_sees_and_what_is_not_read_is_not_reported(function):
    """A helper may or may not print; only `check`, which calls the function, can find out."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jaxcb.pure(function, result="x")


@pytest.mark.parametrize("flavor", [jaxcb.io, jaxcb.debug, jaxcb.tap])
def test_side_effects_of_other_flavors_are_not_reported(flavor):
    def show(x):
        print(x, time.time())
        return x

    flavor(show, result="x") if flavor is jaxcb.io else flavor(show)
