"""Host objects: computed once for arguments of equal content, whatever JAX does around."""

import threading

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

A = np.array([[4.0, 1.0], [1.0, 3.0]], np.float32)
B = np.array([1.0, 2.0], np.float32)


class Factorization:
    def __init__(self, a):
        self.inverse = np.linalg.inv(a)


def solver(**options):
    factor = jaxcb.host_object(**options)(Factorization)
    solve = jaxcb.pure(lambda a, b: (factor(a).inverse @ b).astype(b.dtype), result=lambda a, b: b)
    return factor, solve


def counts(factor):
    return factor.info()[:3]


PROGRAMS = {
    "eager": (lambda f: f(A, B), 1),
    "jit": (lambda f: jax.jit(f)(A, B), 1),
    "vmap": (lambda f: jax.vmap(f, (None, 0))(A, jnp.stack([B] * 5)), 5),
    "nested vmap": (
        lambda f: jax.jit(jax.vmap(jax.vmap(f, (None, 0)), (None, 0)))(A, jnp.ones((2, 3, 2))), 6,
    ),
    "scan": (lambda f: jax.lax.scan(lambda b, _: (f(A, b), None), B, None, length=7), 7),
    "remat": (lambda f: jax.jit(jax.checkpoint(f))(A, B), 1),
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_object_is_computed_once_under_every_transformation(program):
    factor, solve = solver()
    run, calls = PROGRAMS[program]
    jax.block_until_ready(run(solve))
    assert counts(factor) == (1, calls - 1, 0)


def test_forward_and_backward_pass_share_the_object():
    factor, solve = solver()
    transposed = jaxcb.pure(
        lambda a, b: (factor(a).inverse.T @ b).astype(b.dtype), result=lambda a, b: b
    )
    solve.defvjp(lambda a, b: (solve(a, b), a), lambda a, g: (jnp.zeros_like(a), transposed(a, g)))
    value, slope = jax.value_and_grad(lambda b: solve(A, b).sum())(B)
    np.testing.assert_allclose(value, np.linalg.solve(A, B).sum(), rtol=1e-5)
    np.testing.assert_allclose(slope, np.linalg.solve(A.T, np.ones(2)), rtol=1e-5)
    assert factor.info().computed == 1


def test_threads_that_need_the_same_object_compute_it_once():
    started, go = threading.Semaphore(0), threading.Event()
    computed, found = [], []

    @jaxcb.host_object
    def slow(x):
        computed.append(x)
        started.release()
        go.wait()
        return [x]

    threads = [threading.Thread(target=lambda: found.append(slow(3))) for _ in range(8)]
    for thread in threads:
        thread.start()
    started.acquire()
    go.set()
    for thread in threads:
        thread.join()
    assert computed == [3]
    assert all(one is found[0] for one in found)


def test_interrupted_computation_leaves_nothing_behind():
    raised = iter([KeyboardInterrupt, None])

    @jaxcb.host_object
    def factor(x):
        if error := next(raised):
            raise error
        return "made"

    with pytest.raises(KeyboardInterrupt):
        factor(1)
    assert factor(1) == "made"


def test_function_that_needs_its_own_object_is_refused():
    @jaxcb.host_object
    def factor(x):
        return factor(x)

    with pytest.raises(RuntimeError, match="factor needs its own object"):
        factor(1)


@pytest.mark.parametrize("compare", [False, True])
@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (np.arange(4.0), np.arange(4.0), True),
        (np.arange(4.0), np.arange(8.0)[::2] / 2, True),
        (np.asfortranarray(np.eye(3) + 1), np.ascontiguousarray(np.eye(3) + 1), True),
        (np.float32([np.nan]), np.float32([np.nan]), True),
        (jnp.arange(3.0), np.arange(3, dtype=np.float32), True),
        ({"a": np.ones(2), "b": 1}, {"a": np.ones(2), "b": 1}, True),
        (np.arange(4.0), np.arange(4.0).reshape(2, 2), False),
        (np.zeros(2), np.zeros(2, np.float32), False),
        (np.float32([0.0]), np.float32([-0.0]), False),
        (1, 1.0, False),
        (1, True, False),
        ([np.ones(2)], (np.ones(2),), False),
        (np.ones(2, jnp.bfloat16), np.ones(2, np.float16), False),
        (np.array([-1], jnp.int4), np.array([15], jnp.uint4), False),
        (np.zeros(1, jnp.float8_e4m3fn), np.zeros(1, jnp.float8_e4m3b11fnuz), False),
        (np.zeros(1, [("a", "i4")]), np.zeros(1, [("c", "i4")]), False),
        (0.0, -0.0, False),
        (0j, complex(-0.0, 0), False),
        (float("nan"), float("nan"), True),
        ({1: 0}, {True: 0}, False),
        (frozenset([1]), frozenset([1.0]), False),
        (frozenset([1, 2]), frozenset([2, 1]), True),
        (None, None, True),
        ((None, ...), (None, ...), True),
    ],
)
def test_arguments_are_equal_by_content(one, other, equal, compare):
    keep = jaxcb.host_object(compare=compare)(lambda x: object())
    assert (keep(one) is keep(other)) is equal
    assert (keep(x=one) is keep(x=other)) is equal


def test_calls_that_spell_the_same_arguments_differently_are_equal():
    keep = jaxcb.host_object(lambda a, b=2, *, c=3: [a])
    one = keep(1)
    others = keep(a=1), keep(1, 2), keep(1, b=2), keep(1, 2, c=3), keep(b=2, a=1)
    assert all(other is one for other in others)
    assert keep(1, 3) is not one


class NoContent:
    pass


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (NoContent(), "argument 0 of factor is of type NoContent, which has no content"),
        (np.array([NoContent()]), "argument 0 of factor is an array of Python objects"),
        (np.ma.array([1.0]), "argument 0 of factor is a masked array. Pass its parts"),
        (jax.random.key(0), "argument 0 of factor is key<fry>. Pass numbers"),
        ({1, 2}, "argument 0 of factor is of type set, which has no content"),
    ],
)
def test_argument_without_content_is_refused(argument, words):
    @jaxcb.host_object
    def factor(x): ...

    with pytest.raises(TypeError, match=words):
        factor(argument)


def test_traced_argument_is_refused():
    @jaxcb.host_object
    def factor(x): ...

    with pytest.raises(
        TypeError, match=r"argument 0 of factor is traced by JAX \(float32\[2,2\]\)"
    ):
        jax.jit(factor)(A)


def test_object_used_least_recently_is_pushed_out():
    keep = jaxcb.host_object(max_objects=2)(lambda x: [x])
    one = keep(1)
    keep(2)
    assert keep(1) is one
    keep(3)
    assert keep(1) is one
    assert counts(keep) == (3, 2, 1)
    keep(2)
    assert counts(keep) == (4, 2, 2)


def test_bound_in_bytes_holds_for_arrays():
    keep = jaxcb.host_object(max_bytes="10 kB")(np.ones)
    for n in range(1, 1001):
        keep(n)
        assert keep.info().nbytes <= 10_000
    assert keep(5000).nbytes == 40_000  # larger than the bound: returned, not kept
    assert keep.info().objects == 0


def test_size_is_what_the_user_says():
    keep = jaxcb.host_object(max_bytes=10, size=lambda value: value)(lambda x: x)
    keep(4), keep(5), keep(6)
    assert keep.info()[2:5] == (2, 1, 6)


def test_object_older_than_max_age_is_computed_again(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    keep = jaxcb.host_object(max_age=10)(lambda: [])
    first = keep()
    now[0] = 10.0
    assert keep() is first
    now[0] = 10.1
    assert keep() is not first
    assert counts(keep) == (2, 1, 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_bytes": "much"}, "max_bytes='much' is not a size"),
        ({"max_bytes": 0}, "max_bytes=0 is not a size"),
        ({"max_bytes": True}, "max_bytes=True is not a size"),
        ({"max_objects": 0}, "max_objects=0 is not a number of objects above zero"),
        ({"max_objects": 1.5}, "max_objects=1.5 is not a number of objects"),
        ({"max_objects": "3"}, "max_objects='3' is not a number of objects"),
        ({"max_age": -1.0}, "max_age=-1.0 is not a number of seconds above zero"),
        (
            {"max_age": True},
            "max_age=True is not a number of seconds above zero. Pass one, as in max_age=60",
        ),
    ],
)
def test_limit_that_is_none_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        jaxcb.host_object(**options)


@pytest.mark.parametrize(
    ("size", "nbytes"), [(1000, 1000), ("1 GB", 10**9), ("2.5kB", 2500), ("1 MiB", 2**20)]
)
def test_size_is_read(size, nbytes):
    keep = jaxcb.host_object(max_bytes=size, size=lambda value: nbytes)(lambda x: x)
    keep(1)
    assert keep.info().objects == 1
    more = jaxcb.host_object(max_bytes=size, size=lambda value: nbytes + 1)(lambda x: x)
    more(1)
    assert more.info().objects == 0


def test_recording_has_what_happened_to_each_object():
    factor, solve = solver()
    solve(A, B)
    with jaxcb.record() as r:
        jax.block_until_ready(jax.vmap(solve, (None, 0))(A, jnp.stack([B] * 3)))
        solve(A + 1, B)
    (use,) = r.recording.objects
    assert (use.name, use.computed, use.found, use.removed) == ("Factorization", 1, 3, 0)
    assert use.nbytes == factor.info().nbytes
    assert "host object Factorization: computed 1 time in " in str(r.recording)
    assert "found 3 times (saved " in str(r.recording)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_objects": 1}, "removed by a limit; no object was kept long enough to be found"),
        ({}, "no object was found again: its arguments differ in each call"),
    ],
)
def test_note_says_when_objects_are_computed_in_vain(options, words):
    _, solve = solver(**options)
    with jaxcb.record() as r:
        for n in range(12):
            solve(A + n, B)
    assert words in str(r.recording)


def test_workers_in_processes_compute_the_object_once_each():
    @jaxcb.host_object
    def pid_and_number(x):
        import itertools
        import os

        numbers = globals().setdefault("numbers_of_test", itertools.count())
        return os.getpid(), next(numbers)

    ask = jaxcb.pure(
        lambda x, n: np.array(pid_and_number(x), np.int32),
        result=lambda x, n: jax.ShapeDtypeStruct((2,), jnp.int32),
        executor="processes:2",
        chunksize=1,
    )
    found = np.asarray(jax.jit(jax.vmap(ask, (None, 0)))(3.0, jnp.arange(8)))
    found = [*found.tolist(), *np.asarray(jax.vmap(ask, (None, 0))(3.0, jnp.arange(8))).tolist()]
    assert {number for _, number in found} == {0}
    assert 1 <= len({pid for pid, _ in found}) <= 2


def test_cell_that_runs_again_removes_the_objects_of_its_function():
    closed = []
    source = "@jaxcb.host_object(close=closed.append)\ndef opened(x):\n    return {'x': x}\n"
    names = {"jaxcb": jaxcb, "closed": closed}
    exec(source, names)
    names["opened"](1)
    exec(source, names)
    assert closed == [{"x": 1}]


def _no_size(value):
    return "x"


def _fails(value):
    raise LookupError("no size")


@pytest.mark.kept
@pytest.mark.parametrize(
    ("size", "words"),
    [
        (_no_size, r"size=_no_size returned 'x' for an object of table\. Return its bytes"),
        (lambda value: None, "size=<lambda> returned None for an object of table"),
        (lambda value: float("nan"), "size=<lambda> returned nan"),
        (lambda value: float("inf"), "size=<lambda> returned inf"),
        (lambda value: -1, "size=<lambda> returned -1"),
    ],
)
def test_a_size_that_is_no_number_of_bytes_is_named_with_its_option(size, words):
    def table(n):
        return [n]

    with pytest.raises(ValueError, match=words):
        jaxcb.host_object(size=size)(table)(3)


@pytest.mark.kept
def test_what_a_size_function_raises_says_which_it_was():
    def table(n):
        return [n]

    with pytest.raises(LookupError) as caught:
        jaxcb.host_object(size=_fails)(table)(3)
    assert caught.value.__notes__ == ["raised by size=_fails, for an object of table"]


@pytest.mark.kept
@pytest.mark.parametrize("number", [np.int64(8), 8.5, np.float32(8)])
def test_a_size_is_any_real_number(number):
    keep = jaxcb.host_object(size=lambda value: number)(lambda n: [n])
    assert keep(3) == [3] and keep.info().nbytes == 8


def test_failed_computation_is_tried_again_by_those_who_waited():
    outcomes, results = iter([ValueError("singular"), 5]), []
    first, go = threading.Event(), threading.Event()

    @jaxcb.host_object
    def factor(x):
        first.set()
        go.wait()
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def run():
        try:
            results.append(factor(1))
        except ValueError as error:
            results.append(str(error))

    threads = [threading.Thread(target=run) for _ in range(3)]
    threads[0].start()
    first.wait()
    for thread in threads[1:]:
        thread.start()
    go.set()
    for thread in threads:
        thread.join()
    assert sorted(results, key=str) == [5, 5, "singular"]


def test_functions_of_two_threads_that_need_each_other_are_refused():
    both, errors = threading.Barrier(2), []

    @jaxcb.host_object
    def one(x):
        both.wait()
        return other(x)

    @jaxcb.host_object
    def other(x):
        both.wait()
        return one(x)

    def run(function):
        try:
            function(1)
        except (RuntimeError, threading.BrokenBarrierError) as error:
            both.abort()
            errors.append(error)

    threads = [threading.Thread(target=run, args=(f,)) for f in (one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert any("needs its own object" in str(error) for error in errors)


def test_function_in_another_process_keeps_its_objects_between_tasks():
    factor, _ = solver()
    factor(A)
    sent = cloudpickle.dumps(factor)
    assert cloudpickle.loads(sent) is factor
