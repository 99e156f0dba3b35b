"""What a function changes outside of itself is found however it is written, and nothing else is."""

import contextlib
import functools
import io
import itertools
import sys
import types
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.interface import forget_warnings_of_lint

pytestmark = pytest.mark.kept
LOG = []
COUNTS = {"n": 0}
CACHE = {}
NUMBERS = itertools.count()
ARRAY = np.zeros(3)
TEXT = io.StringIO()
MODEL = None
STATE = types.SimpleNamespace(log=[], n=0)


class Counter:
    calls = 0

    def __init__(self):
        self.n, self.log, self.counts, self.kept, self.solver = 0, [], {"n": 0}, {}, None
        self.work, self.steps = np.zeros(3), 0

    def adds(self, x):
        self.n = self.n + 1
        return x

    def adds_in_front(self, x):
        self.n = 1 + 2 * self.n
        return x

    def adds_to_what_it_read(self, x):
        before = self.n
        self.n = before + 1
        return x

    def stores_what_it_added(self, x):
        after = self.n + 1
        self.n = after
        return x

    def annotates(self, x):
        self.n: int = self.n + 1
        return x

    def adds_to_an_item(self, x):
        self.counts["n"] = self.counts.get("n", 0) + 1
        return x

    def adds_to_an_item_in_place(self, x):
        self.counts["n"] += 1
        return x

    def sets_by_name(self, x):
        setattr(self, "n", self.n + 1)  # noqa: B010
        return x

    def sets_and_gets_by_name(self, x):
        setattr(self, "n", getattr(self, "n", 0) + 1)  # noqa: B010
        return x

    def sets_as_a_frozen_class(self, x):
        object.__setattr__(self, "n", self.n + 1)
        return x

    def appends(self, x):
        self.log.append(x)
        return x

    def appends_by_another_name(self, x):
        log = self.log
        log.append(x)
        return x

    def __call__(self, x):
        self.n = self.n + 1
        return x

    def keeps_the_last(self, x):
        self.last = x
        return x

    def keeps_the_last_by_name(self, x):
        setattr(self, "last", x)  # noqa: B010
        return x

    def loads_once(self, x):
        if self.solver is None:
            self.solver = np.linalg.inv
        if not hasattr(self, "scale"):
            self.scale = 2.0
        return x

    def caches_few(self, x):
        key = x.tobytes()
        if key not in self.kept:
            self.kept[key] = np.sin(x)
        if len(self.kept) > 10:
            self.kept.pop(next(iter(self.kept)))
        return self.kept[key]

    def works_in_its_array(self, x):
        self.work[:] = x
        self.work += 1
        return self.work.copy()

    def counts_its_steps(self, x):
        self.steps, self.log = 0, []
        self.steps = 0
        self.log = []
        for _ in range(3):
            self.steps += 1
            self.log.append(x)
        return x


COUNTER = Counter()


def passes_on(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args)

    return inner


def passes_a_copy(function):
    @functools.wraps(function)
    def inner(x):
        return function(np.array(x))

    return inner


def announces(function):
    @functools.wraps(function)
    def inner(*args):
        print("calls")
        return function(*args)

    return inner


def default_list(x, seen=[]):  # noqa: B006
    seen.append(x)
    return x


def default_dict(x, counts={"n": 0}):  # noqa: B006
    counts["n"] += 1
    return x


def default_list_of_one(x, count=[0]):  # noqa: B006
    count[0] = count[0] + 1
    return x


def default_of_a_keyword(x, *, seen=set()):  # noqa: B006
    seen.add(float(x))
    return x


def default_counter(x, numbers=itertools.count()):  # noqa: B008
    return x * next(numbers)


def appends(x):
    LOG.append(x)
    return x


def appends_by_another_name(x):
    log = LOG
    log.append(x)
    return x


def adds_by_another_name(x):
    counts = COUNTS
    counts["n"] += 1
    return x


def appends_to_an_attribute(x):
    log = STATE.log
    log.append(x)
    return x


def appends_by_the_method(x):
    add = LOG.append
    add(x)
    return x


def adds_to_an_item(x):
    COUNTS["n"] = COUNTS["n"] + 1
    return x


def sets_by_name(x):
    setattr(STATE, "n", 3)  # noqa: B010
    return x


def adds_to_a_class(x):
    Counter.calls = Counter.calls + 1
    return x


def next_number(x):
    return x * next(NUMBERS)


def pops(x):
    return x * (LOG.pop() if LOG else 1)


def deletes(x):
    del LOG[0]
    return x


def prints_to_a_global(x):
    print(x, file=TEXT)
    return x


CHANGES = [
    COUNTER.adds, COUNTER.adds_in_front, COUNTER.adds_to_what_it_read,
    COUNTER.stores_what_it_added, COUNTER.annotates, COUNTER.adds_to_an_item,
    COUNTER.adds_to_an_item_in_place, COUNTER.sets_by_name, COUNTER.sets_and_gets_by_name,
    COUNTER.sets_as_a_frozen_class, COUNTER.appends, COUNTER.appends_by_another_name, COUNTER,
    default_list, default_dict, default_list_of_one, default_of_a_keyword, default_counter,
    passes_on(appends), passes_on(passes_on(adds_to_an_item)), np.errstate(all="ignore")(appends),
    passes_a_copy(appends), functools.lru_cache(appends), appends_by_another_name,
    adds_by_another_name, appends_to_an_attribute, appends_by_the_method, adds_to_an_item,
    sets_by_name, adds_to_a_class, next_number, pops, deletes,
    functools.partial(lambda log, x: log.append(x) or x, LOG),
    lambda x: LOG.append(x) or x,
]  # fmt: skip


def prints_to_its_own_text(x):
    text = io.StringIO()
    print(x, file=text)
    print(x, file=io.StringIO())
    return x


def catches_what_it_prints(x):
    with contextlib.redirect_stdout(io.StringIO()):
        print(x)
    return x


def replaces_its_default(x, out=None, seen=[]):  # noqa: B006
    out, seen = np.empty_like(x) if out is None else out, list(seen)
    out[...] = x
    seen.append(x)
    return out


def caches_in_a_default(x, cache={}):  # noqa: B006
    if float(x) not in cache:
        cache[float(x)] = np.sin(x)
    return cache[float(x)]


@passes_a_copy
def writes_into_its_copy(x):
    x[...] = 1
    return x


def writes_into_copies(x):
    part, log = ARRAY[[0, 1]], list(LOG)
    part[:] = 3
    log.append(x)
    return x


def has_a_class_of_its_own(x):
    class Inner:
        def __init__(self):
            self.n, self.log = 0, []

        def add(self):
            self.n += 1
            self.log.append(1)

    Inner().add()
    return x


def has_a_function_of_its_own(x):
    def doubles(x):
        x[...] = 2 * x
        return x

    return doubles(np.array(x))


def loads_once(x):
    global MODEL
    if MODEL is None:
        MODEL = 3.0
    return x * MODEL


def counts_in_its_own_objects(x):
    log, counts, state = [], {}, types.SimpleNamespace(n=0)
    counts["n"] = counts.get("n", 0) + 1
    state.n += 1
    add = log.append
    add(1)
    return x


NO_CHANGES = [
    COUNTER.keeps_the_last, COUNTER.keeps_the_last_by_name, COUNTER.loads_once,
    COUNTER.caches_few, COUNTER.works_in_its_array, COUNTER.counts_its_steps,
    prints_to_its_own_text, catches_what_it_prints, replaces_its_default, caches_in_a_default,
    writes_into_its_copy, writes_into_copies, has_a_class_of_its_own, has_a_function_of_its_own,
    loads_once, counts_in_its_own_objects, passes_on(np.sin), functools.wraps(np.sin)(loads_once),
]  # fmt: skip


def warned(call, *arguments, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*arguments, **options)
    return caught


@pytest.fixture(autouse=True)
def _not_warned_before(monkeypatch):
    """A function is warned of once."""
    forget_warnings_of_lint(monkeypatch)


def name_of(function):
    return getattr(function, "__name__", type(function).__name__)


@pytest.mark.parametrize("function", CHANGES, ids=name_of)
def test_change_of_something_outside_is_found_in_pure_and_in_sent_functions(function):
    (impure,) = warned(jaxcb.pure, function, result=lambda *args: args[-1])
    assert impure.category is jaxcb.ImpureFunctionWarning
    assert " modifies outer state (" in str(impure.message)
    (kept,) = warned(jaxcb.io, function, result=lambda *args: args[-1], executor="processes")
    assert kept.category is jaxcb.WorkerStateWarning
    assert kept.lineno == impure.lineno and kept.filename == __file__


@pytest.mark.parametrize("function", NO_CHANGES, ids=name_of)
def test_caches_and_objects_of_the_function_itself_are_no_change(function):
    assert warned(jaxcb.pure, function, result="x") == []
    assert warned(jaxcb.io, function, result="x", executor="processes") == []


def test_print_to_a_file_of_others_is_a_change_and_no_printing():
    (one,) = warned(jaxcb.pure, prints_to_a_global, result="x")
    assert "modifies outer state (TEXT, test_changes.py:" in str(one.message)


def prints_twice(x):
    print(x, file=io.StringIO())
    print(x)
    return x


def prints_to_stderr(x):
    print(x, file=sys.stderr)
    return x


@pytest.mark.parametrize(
    "function, line",
    [(prints_twice, 2), (prints_to_stderr, 1), (passes_on(prints_twice), 2)],
)
def test_print_that_is_seen_is_reported_with_its_line(function, line):
    (one,) = warned(jaxcb.pure, function, result="x")
    written = getattr(function, "__wrapped__", function)
    assert " prints (" in str(one.message)
    assert one.lineno == written.__code__.co_firstlineno + line


def test_side_effect_of_a_decorator_is_reported_at_its_line_for_each_function():
    first, second = announces(lambda x: x), announces(lambda x: 2 * x)
    for function in (first, second):
        (one,) = warned(jaxcb.pure, function, result="x")
        assert " prints (print, " in str(one.message)
        assert one.lineno == first.__code__.co_firstlineno + 2


def test_functions_with_one_decorator_are_told_apart():
    assert warned(jaxcb.pure, passes_on(lambda x: x), result="x") == []
    (one,) = warned(jaxcb.pure, passes_on(appends), result="x")
    assert "the pure callback appends modifies" in str(one.message)


STRUCT = jax.ShapeDtypeStruct((), np.float32)


def drop_in(function):
    return lambda x: jaxcb.pure_callback(function, STRUCT, x, vmap_method="sequential")


def sent(function):
    return lambda x: jaxcb.io_callback(function, STRUCT, x, executor="processes")


def run(around, call):
    jax.block_until_ready(around(call)(jnp.ones(3) if around is jax.vmap else jnp.float32(1)))


@pytest.mark.parametrize("around", [lambda f: f, jax.jit, jax.vmap], ids=["eager", "jit", "vmap"])
def test_function_of_a_drop_in_is_warned_of_once_with_the_advice_of_calls(around):
    (one,) = warned(run, around, drop_in(adds_to_an_item))
    line = adds_to_an_item.__code__.co_firstlineno + 1
    assert (one.category, one.lineno) == (jaxcb.ImpureFunctionWarning, line)
    assert str(one.message) == (
        f"the pure callback adds_to_an_item modifies outer state (COUNTS['n'], test_changes.py:"
        f"{line}), but JAX may remove, repeat or deduplicate its calls. Use io_callback."
    )
    assert warned(run, around, drop_in(adds_to_an_item)) == []


def test_state_of_a_drop_in_is_warned_of_if_its_calls_leave_the_process():
    (one,) = warned(jax.make_jaxpr(sent(adds_to_an_item)), jnp.float32(1))
    assert one.category is jaxcb.WorkerStateWarning
    assert "the io callback adds_to_an_item keeps state between calls (" in str(one.message)


def test_functions_of_drop_ins_without_a_change_are_not_warned_of():
    def program(x):
        x = jaxcb.pure_callback(COUNTER.loads_once, STRUCT, x)
        return jaxcb.io_callback(appends, STRUCT, x)

    assert warned(run, jax.jit, program) == []


class LiesAboutItsClass:
    @property
    def __class__(self):
        raise RuntimeError("no class")


def refers_to_an_odd_object():
    odd = LiesAboutItsClass()

    def function(x, given=odd):
        return x if given is odd else -x

    return function


@pytest.mark.parametrize("call", [drop_in, sent])
def test_object_that_raises_when_it_is_examined_fails_no_call(call):
    program = call(refers_to_an_odd_object())
    assert warned(jax.make_jaxpr(program), jnp.float32(1)) == []
