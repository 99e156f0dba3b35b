"""What a pure callback promises: values, host calls and host shapes as JAX's own."""

import itertools
import math

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import scipy.special
from jax import lax

import jupyter_jaxcb as jaxcb

METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")

methods = pytest.mark.parametrize("method", METHODS)


def like_first(x, *rest):
    """A result expression as a function of the parameters: like the first one."""
    return jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x))


def shapes(seen):
    return [tuple(arg.shape for arg in args) for args in seen]


def values(seen):
    """Arguments of every host call, in the order they came, as plain Python."""
    return [tuple(arg.tolist() for arg in args) for args in seen]


# P1, P2: a first callback


def wave(x, y):
    """``sin(x)*y + 1``; batch axes of y, where it has any, are the leading ones of x."""
    return np.sin(x) * np.reshape(y, y.shape + (1,) * (x.ndim - y.ndim)) + np.float32(1)


X = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)
XS = np.linspace(-2, 2, 90, dtype=np.float32).reshape(10, 3, 3)
Y = np.float32(1.5)


def test_elementwise_host_function_is_part_of_a_jitted_program(pure, spy, run):
    """P1: the host's answer goes into more JAX work."""
    host, seen = spy(wave)
    f = pure(host, like_first)
    answer = run(jax.jit(lambda x, y: jnp.sum(f(x, y) ** 2)), X, Y)
    np.testing.assert_allclose(answer, np.sum((np.sin(X) * Y + 1) ** 2), rtol=1e-5)
    assert shapes(seen) == [((3, 3), ())]


def test_result_may_be_said_as_a_parameter_name(spy, run):
    """P1 with the decorator: the result is like "x", whatever x is."""
    host, seen = spy(wave)
    f = jaxcb.pure(result="x")(host)
    np.testing.assert_allclose(run(jax.jit(f), X, Y), np.sin(X) * Y + 1, rtol=1e-6)
    np.testing.assert_allclose(run(jax.jit(f), X[0], Y), np.sin(X[0]) * Y + 1, rtol=1e-6)
    assert shapes(seen) == [((3, 3), ()), ((3,), ())]


def test_every_call_of_a_compiled_program_calls_the_host_once(pure, spy, run):
    """P1: also when nothing is traced any more."""
    host, seen = spy(np.sin)
    f = jax.jit(pure(host, like_first))
    for number in range(4):
        np.testing.assert_allclose(run(f, np.float32(number)), np.sin(number), rtol=1e-6)
    assert values(seen) == [(0.0,), (1.0,), (2.0,), (3.0,)]


@pytest.mark.parametrize(
    ("method", "calls"),
    {
        "sequential": 10 * [((3, 3), ())],
        "sequential_unrolled": 10 * [((3, 3), ())],
        "expand_dims": [((10, 3, 3), (1,))],
        "broadcast_all": [((10, 3, 3), (10,))],
        "legacy_vectorized": [((10, 3, 3), ())],
    }.items(),
    ids=METHODS,
)
def test_vmap_over_one_argument_calls_as_its_method_says(pure, spy, run, method, calls):
    """P2: in_axes (0, None) over (10, 3, 3)."""
    host, seen = spy(wave)
    f = pure(host, like_first, vmap_method=method)
    answer = run(jax.jit(jax.vmap(f, in_axes=(0, None))), XS, Y)
    assert answer.shape == (10, 3, 3)
    np.testing.assert_allclose(answer, np.sin(XS) * Y + 1, rtol=1e-6)
    assert shapes(seen) == calls


def test_decorated_function_visits_one_lane_after_the_other_by_default(spy, run):
    """P2: no vmap_method is asked of someone who decorates: the default is always right."""
    host, seen = spy(wave)
    f = jaxcb.pure(result="x")(host)
    answer = run(jax.vmap(f, in_axes=(0, None)), XS, Y)
    np.testing.assert_allclose(answer, np.sin(XS) * Y + 1, rtol=1e-6)
    np.testing.assert_array_equal(np.stack([x for x, _ in seen]), XS)


# P4: structures

SCALAR = jax.ShapeDtypeStruct((), np.float32)
VECTOR = jax.ShapeDtypeStruct((3,), np.float32)
V = np.array([1, 2, 6], np.float32)


def test_two_results_come_back_as_the_declared_tuple(pure, spy, run):
    """P4: sum and mean as a tuple of scalar structs."""
    host, seen = spy(lambda x: (x.sum(), x.mean()))
    f = pure(host, (SCALAR, SCALAR))
    answer = run(jax.jit(f), V)
    assert type(answer) is tuple
    assert [(a.shape, a.dtype.name, a.item()) for a in answer] == [
        ((), "float32", 9.0),
        ((), "float32", 3.0),
    ]
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (SCALAR, 9.0),
        ((SCALAR,), (9.0,)),
        ([SCALAR, VECTOR], [9.0, V]),
        ({"low": SCALAR, "all": {"same": VECTOR}}, {"low": 1.0, "all": {"same": V}}),
        ({"pair": (SCALAR, [VECTOR, None])}, {"pair": (9.0, [V, None])}),
        (((), {}, None, VECTOR), ((), {}, None, V)),
    ],
    ids=["leaf", "tuple of one", "list", "dicts", "None inside", "empty ones inside"],
)
def test_any_structure_can_be_the_result(pure, spy, run, result, answer):
    """P4: what comes has the declared structure, and the values at their places."""
    host, seen = spy(lambda x: jax.tree.map(np.float32, answer))
    f = pure(host, result)
    got = run(f, V)
    assert jax.tree.structure(got) == jax.tree.structure(answer)
    jax.tree.map(np.testing.assert_array_equal, got, answer)
    got = run(jax.jit(f), V)
    assert jax.tree.structure(got) == jax.tree.structure(answer)
    assert len(seen) == 2


def test_structures_and_keywords_reach_the_host_as_they_were_given(pure, run):
    """P4: pytrees of arrays as positional and keyword arguments."""
    seen = []

    def host(tree, *, scale, shift):
        seen.append(jax.tree.structure((tree, scale, shift)))
        a, (b, c) = (np.asarray(tree["a"]), map(np.asarray, tree["bc"]))
        return (a + b * c) * np.asarray(scale) + np.asarray(shift[0])

    f = pure(host, lambda tree, **_: VECTOR)
    arguments = {"a": V, "bc": (V + 1, [V][0] + 2)}
    keywords = {"scale": np.float32(2), "shift": [np.float32(1), None]}
    expected = (V + (V + 1) * (V + 2)) * 2 + 1
    np.testing.assert_allclose(run(lambda: f(arguments, **keywords)), expected)
    np.testing.assert_allclose(run(jax.jit(lambda a: f(a, **keywords)), arguments), expected)
    assert seen == 2 * [jax.tree.structure((arguments, keywords["scale"], keywords["shift"]))]


def test_keyword_arguments_are_mapped_by_vmap_like_the_others(pure, run):
    """P4 under vmap: 3 calls, each with its lane of both."""
    seen = []

    def host(x, *, y):
        seen.append((np.asarray(x).item(), np.asarray(y).item()))
        return np.asarray(x) * np.asarray(y)

    f = pure(host, lambda x, *, y: like_first(x), vmap_method="sequential")
    answer = run(jax.vmap(lambda x, y: f(x, y=y)), V, V + 1)
    np.testing.assert_allclose(answer, V * (V + 1))
    assert seen == [(1.0, 2.0), (2.0, 3.0), (6.0, 7.0)]


# P5: sin on the host, everywhere JAX code can be

FIVE = np.linspace(0, 2, 5, dtype=np.float32)
ZERO = np.float32(0)


def while_sum(f, x):
    def step(carry):
        number, total = carry
        return number + 1, total + f(jnp.asarray(x)[number])

    return lax.while_loop(lambda carry: carry[0] < 5, step, (0, ZERO))[1]


PLACES = {  # name: (f, x) -> value, the value, host calls
    "plain": (lambda f, x: f(x), np.sin(FIVE), 1),
    "jit": (lambda f, x: jax.jit(f)(x), np.sin(FIVE), 1),
    "jit in jit": (lambda f, x: jax.jit(lambda x: jax.jit(f)(x) + 1)(x), np.sin(FIVE) + 1, 1),
    "vmap": (lambda f, x: jax.vmap(f)(x), np.sin(FIVE), 5),
    "jit of vmap": (lambda f, x: jax.jit(jax.vmap(f))(x), np.sin(FIVE), 5),
    "vmap of jit": (lambda f, x: jax.vmap(jax.jit(f))(x), np.sin(FIVE), 5),
    "lax.map": (lambda f, x: lax.map(f, x), np.sin(FIVE), 5),
    "scan": (
        lambda f, x: lax.scan(lambda c, a: (c + f(a), None), ZERO, x)[0],
        np.sin(FIVE).sum(),
        5,
    ),
    "scan, every step's value": (
        lambda f, x: lax.scan(lambda c, a: (c, f(a)), 0, x)[1],
        np.sin(FIVE),
        5,
    ),
    "scan, twice a step": (
        lambda f, x: lax.scan(lambda c, a: (c + f(a), f(a)), ZERO, x)[0] * 2,
        2 * np.sin(FIVE).sum(),
        10,
    ),
    "fori_loop": (
        lambda f, x: lax.fori_loop(0, 5, lambda i, c: c + f(jnp.asarray(x)[i]), ZERO),
        np.sin(FIVE).sum(),
        5,
    ),
    "while_loop": (while_sum, np.sin(FIVE).sum(), 5),
    "vmap of scan": (
        lambda f, x: jax.vmap(lambda a: lax.scan(lambda c, b: (c + f(a * b), None), ZERO, x)[0])(x),
        np.sin(FIVE[:, None] * FIVE).sum(1),
        25,
    ),
}


@pytest.mark.parametrize(("place", "expected", "calls"), PLACES.values(), ids=PLACES)
def test_host_function_equals_numpy_wherever_it_is_called(pure, spy, run, place, expected, calls):
    """P5: plain, transformed, in loops."""
    host, seen = spy(np.sin)
    f = pure(host, like_first, vmap_method="sequential")
    np.testing.assert_allclose(run(place, f, FIVE), expected, rtol=1e-5)
    assert len(seen) == calls


@pytest.mark.parametrize("taken", [True, False])
def test_cond_calls_the_taken_branch_alone(pure, spy, run, taken):
    """P5: one call, none of the other branch."""
    (sin, sins), (cos, coss) = spy(np.sin), spy(np.cos)
    f, g = pure(sin, like_first), pure(cos, like_first)
    answer = run(jax.jit(lambda yes, x: lax.cond(yes, f, g, x)), taken, FIVE)
    np.testing.assert_allclose(answer, np.sin(FIVE) if taken else np.cos(FIVE), rtol=1e-6)
    assert (len(sins), len(coss)) == (taken, not taken)


@pytest.mark.parametrize("branch", [0, 1, 2])
def test_switch_calls_the_taken_branch_alone(pure, spy, run, branch):
    """P5: one call of the function of that branch."""
    functions = (np.sin, np.cos, np.tanh)
    hosts, lists = zip(*map(spy, functions), strict=True)
    f = jax.jit(lambda i, x: lax.switch(i, [pure(host, like_first) for host in hosts], x))
    np.testing.assert_allclose(run(f, branch, FIVE), functions[branch](FIVE), rtol=1e-6)
    assert [len(seen) for seen in lists] == [number == branch for number in range(3)]


def test_vmapped_cond_with_a_batched_predicate_calls_both_branches_as_jax_does(pure, spy, run):
    """P5: it becomes a select, which needs both values of every lane."""
    (sin, sins), (cos, coss) = spy(np.sin), spy(np.cos)
    f, g = (pure(host, like_first, vmap_method="sequential") for host in (sin, cos))
    above = FIVE > 1
    answer = run(jax.vmap(lambda yes, x: lax.cond(yes, f, g, x)), above, FIVE)
    np.testing.assert_allclose(answer, np.where(above, np.sin(FIVE), np.cos(FIVE)), rtol=1e-6)
    assert (len(sins), len(coss)) == (5, 5)


# P6: who is called and who is not


def test_used_result_is_called_for_and_unused_one_is_not(pure, spy, run):
    """P6: 1 call and 0 calls, in one program."""
    (used, use), (dropped, drop) = spy(np.sin), spy(np.cos)
    f, g = pure(used, like_first), pure(dropped, like_first)

    def program(x):
        g(x)
        return f(x)

    np.testing.assert_allclose(run(jax.jit(program), FIVE), np.sin(FIVE), rtol=1e-6)
    assert (len(use), len(drop)) == (1, 0)


def test_eager_call_runs_though_its_result_is_dropped(pure, spy, run):
    """P6: outside of jit JAX cannot know that nobody will look."""
    host, seen = spy(np.sin)
    run(pure(host, like_first), FIVE)
    assert len(seen) == 1


@jaxcb.pure(result="x")
def watched(x):
    return np.sin(x)


def drops_the_drop_in(x):
    jaxcb.pure_callback(np.sin, x, x)
    return x + 1


def drops_the_decorated(x):
    watched(x)
    return x + 1


droppers = pytest.mark.parametrize(
    ("program", "name"),
    [(drops_the_drop_in, "sin"), (drops_the_decorated, "watched")],
    ids=["drop-in", "decorator"],
)


@droppers
@pytest.mark.parametrize(
    "transformed",
    [
        jax.jit,
        lambda f: jax.jit(lambda x: 2 * jax.jit(f)(x) - f(x)),
        lambda f: jax.jit(lambda x: lax.scan(lambda c, a: (f(c), None), x, None, 3)[0] - 2),
    ],
    ids=["jit", "jit in jit", "scan"],
)
def test_unused_callback_is_reported_with_its_line_and_a_remedy(program, name, transformed, run):
    """P6: 0 calls, and fate "unused" says so."""
    f = transformed(lambda x: program(x))  # a new function: nothing of it is compiled yet
    with jaxcb.record() as r:
        np.testing.assert_allclose(run(f, FIVE), FIVE + 1, rtol=1e-6)
    assert len(r.recording) == 0
    assert r.recording.elisions
    for elided in r.recording.elisions:
        assert elided.fate == "unused"
        assert (elided.site.flavor, elided.site.function) == ("pure", name)
        assert elided.site.file == __file__
        assert elided.site.line == program.__code__.co_firstlineno + 1
        assert elided.site.source == program_source(elided.site.line)
        assert elided.reason and "io" in elided.remedy


def program_source(line):
    with open(__file__) as file:
        return next(itertools.islice(file, line - 1, None)).strip()


@droppers
def test_unused_callback_is_reported_once_per_bind(program, name, run):
    """P6: one line of user code, one bind, one program: one elision."""
    with jaxcb.record() as r:
        run(jax.jit(lambda x: program(x)), FIVE)
    (elided,) = r.recording.elisions
    assert elided.site.function == name
    assert len(r.recording) == 0


def test_used_callback_is_not_reported_as_elided(run):
    """P6: a call and no elision."""
    with jaxcb.record() as r:
        np.testing.assert_allclose(run(jax.jit(lambda x: watched(x)), FIVE), np.sin(FIVE))
    (call,) = r.recording.calls_of("watched")
    assert r.recording.lowered[call.lowered].site.line
    assert r.recording.elisions == ()


@droppers
@pytest.mark.parametrize(
    "look",
    [
        lambda f, x: jax.make_jaxpr(f)(x),
        lambda f, x: jax.eval_shape(f, x),
        lambda f, x: jax.jit(f).lower(x),
        lambda f, x: jax.jit(f).trace(x),
    ],
    ids=["make_jaxpr", "eval_shape", "lower", "trace"],
)
def test_looking_at_a_program_calls_nothing_and_elides_nothing(program, name, look):
    """P6: nothing was compiled, so nothing can be missing."""
    with jaxcb.record() as r:
        look(lambda x: program(x), FIVE)
    assert len(r.recording) == 0
    assert r.recording.elisions == ()


@pytest.mark.parametrize("look", [jax.make_jaxpr, lambda f: lambda x: jax.eval_shape(f, x)])
def test_tracing_never_calls_the_host(pure, spy, look):
    """P6: shapes are known without it."""
    host, seen = spy(np.sin)
    look(jax.jit(pure(host, like_first)))(FIVE)
    assert seen == []


def two_equal_calls(f, x):
    return f(x) + f(x)


def two_equal_calls_of_a_jitted_function(f, x):
    g = jax.jit(f)
    return g(x) + g(x)


def invariant_in_scan(f, x):
    return lax.scan(lambda c, _: (c + f(x), None), x, None, 4)[0]


def constant_in_scan(f, x):
    return lax.scan(lambda c, _: (c + f(ZERO), None), x, None, 4)[0]


def invariant_in_grad_of_scan(f, x):
    def loss(w):
        return lax.scan(lambda c, _: (c * w + f(x), None), ZERO, None, 4)[0]

    return jax.grad(loss)(np.float32(2))


def in_scan_of_length_one(f, x):
    return lax.scan(lambda c, _: (c + f(c), None), x, None, 1)[0]


def in_scan_of_length_zero(f, x):
    return lax.scan(lambda c, _: (c + f(c), None), x, None, 0)[0]


def shape_alone(f, x):
    return x * f(x).size


@pytest.mark.parametrize(
    "program",
    [
        two_equal_calls,
        two_equal_calls_of_a_jitted_function,
        invariant_in_scan,
        constant_in_scan,
        invariant_in_grad_of_scan,
        in_scan_of_length_one,
        in_scan_of_length_zero,
        shape_alone,
    ],
    ids=lambda program: program.__name__,
)
def test_number_of_calls_is_that_of_jax(our_pure, jax_pure, spy, run, program):
    """P6: equal calls, loop-invariant calls, calls that XLA may prove away."""
    (host, seen), (jax_host, jax_seen) = spy(np.sin), spy(np.sin)
    f, g = our_pure(host, like_first), jax_pure(jax_host, like_first)
    x = np.float32(0.5)
    answer = run(jax.jit(lambda x: program(f, x)), x)
    expected = run(jax.jit(lambda x: program(g, x)), x)
    np.testing.assert_array_equal(answer, expected)
    assert values(seen) == values(jax_seen)


# P7, P8: vmap_method


def add(x, y):
    return x + y


HOST_SHAPES = {
    "sequential": 4 * [((), ())],
    "sequential_unrolled": 4 * [((), ())],
    "expand_dims": [((4,), (1,))],
    "broadcast_all": [((4,), (4,))],
    "legacy_vectorized": [((4,), ())],
}


@pytest.mark.parametrize("compiled", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(("method", "calls"), HOST_SHAPES.items(), ids=HOST_SHAPES)
def test_vmap_method_decides_shapes_and_number_of_calls(pure, spy, run, method, calls, compiled):
    """P7: x batched (4,), y a scalar, in_axes (0, None)."""
    host, seen = spy(add)
    f = pure(host, like_first, vmap_method=method)
    x = np.float32([1, 2, 3, 4])
    answer = run(compiled(jax.vmap(f, in_axes=(0, None))), x, np.float32(10))
    np.testing.assert_array_equal(answer, x + 10)
    assert shapes(seen) == calls


@methods
def test_recorded_host_shapes_are_those_the_host_saw(method, run):
    """P7: what record() says about the batching is what happened."""
    seen = []

    @jaxcb.pure(result="x", vmap_method=method)
    def plus(x, y):
        seen.append((x.shape, y.shape))
        return x + y

    with jaxcb.record() as r:
        run(jax.jit(jax.vmap(plus, in_axes=(0, None))), np.float32([1, 2, 3, 4]), np.float32(10))
    assert seen == HOST_SHAPES[method]
    calls = r.recording.calls_of("plus")
    assert len(calls) == len(r.recording) == len(seen)
    for call, shown in zip(calls, seen, strict=True):
        lowered = r.recording.lowered[call.lowered]
        operands, (result,) = lowered.host_avals()
        assert tuple(aval.shape for aval in operands) == shown
        assert (result.shape, result.dtype) == (shown[0], "float32")
        ((size, name, batched),) = lowered.levels
        assert (size, name, batched) == (4, method, (True, False))


def test_vmap_without_a_method_names_the_choices(our_pure, spy):
    """P7: an error while tracing, so no call."""
    host, seen = spy(add)
    f = our_pure(host, like_first)
    with pytest.raises(NotImplementedError) as caught:
        jax.vmap(f, in_axes=(0, None))(FIVE, np.float32(10))
    assert [method for method in METHODS if method not in str(caught.value)] == []
    assert seen == []


@pytest.mark.parametrize("method", METHODS[:2])
def test_zero_lanes_make_zero_calls(our_pure, spy, run, method):
    """P7: looped lanes are called one by one, and there is none."""
    host, seen = spy(np.sin)
    f = our_pure(host, like_first, vmap_method=method)
    answer = run(jax.vmap(f), np.zeros((0, 3), np.float32))
    assert (answer.shape, answer.dtype) == ((0, 3), np.float32)
    assert seen == []


@pytest.mark.parametrize("method", METHODS[:2])
def test_vmap_that_maps_no_argument_makes_one_call(pure, spy, run, method):
    """P7: one value for all lanes."""
    host, seen = spy(np.sin)
    f = pure(host, like_first, vmap_method=method)
    answer = run(jax.vmap(lambda _: f(np.float32(1)), axis_size=3, in_axes=None, out_axes=None), 0)
    np.testing.assert_allclose(answer, np.sin(np.float32(1)), rtol=1e-6)
    assert len(seen) == 1


def scaled(x, y):
    """``x * y`` with x of one more axis than y, whatever batch axes lead."""
    return x * np.expand_dims(y, -1)


NESTS = {  # in_axes of every vmap, outermost first; x is (2,), y is ()
    "two, one each": [(None, 0), (1, None)],
    "two, crossed": [(2, 0), (0, None)],
    "two, last axes": [(-1, -1), (1, 0)],
    "three, both": [(1, 2), (-1, 0), (0, 0)],
    "three, mixed": [(2, None), (None, 0), (1, None)],
}
SIZES = (3, 4, 2)
nests = pytest.mark.parametrize("nest", NESTS.values(), ids=NESTS)


def vmapped(f, nest):
    for axes in reversed(nest):
        f = jax.vmap(f, in_axes=axes)
    return f


def nest_arguments(nest):
    """x and y whose every lane is different, and the same as loops over the lanes would see."""
    cores, arguments = ((2,), ()), []
    for position, core in enumerate(cores):
        shape = list(core)
        for axes, size in reversed(list(zip(nest, SIZES, strict=False))):
            if (axis := axes[position]) is not None:
                shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, size)
        count = math.prod(shape)
        arguments.append(np.arange(1, 1 + count, dtype=np.float32).reshape(shape))
    return arguments


def looped(f, nest, sizes, arguments):
    if not nest:
        return f(*arguments)
    (axes, *inner), (size, *rest) = nest, sizes
    return np.stack(
        [
            looped(
                f,
                inner,
                rest,
                [
                    arg if axis is None else np.take(arg, lane, axis)
                    for arg, axis in zip(arguments, axes, strict=True)
                ],
            )
            for lane in range(size)
        ]
    )


@nests
@pytest.mark.parametrize("method", ["expand_dims", "broadcast_all"])
def test_batch_axes_lead_outermost_first(pure, spy, run, nest, method):
    """P8: one call; axes of size 1 stand for vmaps that do not map over an argument."""
    host, seen = spy(scaled)
    arguments = nest_arguments(nest)
    f = pure(host, like_first, vmap_method=method)
    answer = run(jax.jit(vmapped(f, nest)), *arguments)
    np.testing.assert_array_equal(answer, looped(scaled, nest, SIZES, arguments))

    def led(position):
        full = method == "broadcast_all"
        return tuple(
            size if full or axes[position] is not None else 1
            for axes, size in zip(nest, SIZES, strict=False)
        )

    assert shapes(seen) == [((*led(0), 2), led(1))]


@nests
@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled"])
def test_nested_lanes_are_called_one_by_one(pure, spy, run, nest, method):
    """P8: every call has exactly the unbatched shapes, and every lane has its own."""
    host, seen = spy(scaled)
    arguments = nest_arguments(nest)
    f = pure(host, like_first, vmap_method=method)
    answer = run(jax.jit(vmapped(f, nest)), *arguments)
    np.testing.assert_array_equal(answer, looped(scaled, nest, SIZES, arguments))
    assert shapes(seen) == math.prod(SIZES[: len(nest)]) * [((2,), ())]


@nests
def test_nested_lanes_are_visited_in_the_order_of_jax(our_pure, jax_pure, spy, run, nest):
    """P8: the outermost axis is the fastest, whichever axes the arguments are mapped over."""
    (host, seen), (jax_host, jax_seen) = spy(scaled), spy(scaled)
    arguments = nest_arguments(nest)
    for make, function in ((our_pure, host), (jax_pure, jax_host)):
        run(vmapped(make(function, like_first, vmap_method="sequential"), nest), *arguments)
    assert len(seen) == math.prod(SIZES[: len(nest)])
    assert values(seen) == values(jax_seen)


def test_two_nested_vmaps_visit_the_outermost_axis_fastest(pure, spy, run):
    """P8: lanes 0, 3, 1, 4, 2, 5 of a (2, 3) batch."""
    host, seen = spy(np.sin)
    f = pure(host, like_first, vmap_method="sequential")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(run(jax.vmap(jax.vmap(f)), x), np.sin(x), rtol=1e-6)
    assert [x.item() for (x,) in seen] == [0, 3, 1, 4, 2, 5]


@nests
def test_legacy_vectorized_adds_batch_axes_to_mapped_arguments_alone(
    our_pure, jax_pure, spy, run, nest
):
    """P8: as JAX does it, refusals included."""

    def host_of(x, y):
        batch = max(x.shape[:-1], y.shape, key=len)
        return np.ones((*batch, 2), np.float32)

    def outcome(make):
        host, seen = spy(host_of)
        f = make(host, like_first, vmap_method="legacy_vectorized")
        try:
            answer = run(jax.jit(vmapped(f, nest)), *nest_arguments(nest))
        except Exception:
            return "refused", shapes(seen)
        return answer.shape, shapes(seen)

    assert outcome(our_pure) == outcome(jax_pure)


@pytest.mark.parametrize(
    ("outer", "inner", "host_shapes"),
    [
        ("sequential", "expand_dims", 3 * [((4, 2), (4,))]),
        ("expand_dims", "sequential", 4 * [((3, 2), (3,))]),
    ],
)
def test_methods_can_be_mixed_by_nesting_callbacks(spy, run, outer, inner, host_shapes):
    """P8: two callbacks of different methods under the same two vmaps keep apart."""
    (first, firsts), (second, seconds) = spy(scaled), spy(scaled)
    f = jaxcb.pure(result="x", vmap_method=outer)(first)
    g = jaxcb.pure(result="x", vmap_method=inner)(second)
    nest = [(0, 0), (0, 0)]
    arguments = nest_arguments(nest)
    answer = run(jax.jit(vmapped(lambda x, y: f(g(x, y), y), nest)), *arguments)
    twice = looped(lambda x, y: scaled(scaled(x, y), y), nest, SIZES, arguments)
    np.testing.assert_array_equal(answer, twice)
    one_by_one, at_once = 12 * [((2,), ())], [((3, 4, 2), (3, 4))]
    expected = {"sequential": one_by_one, "expand_dims": at_once}
    assert (shapes(firsts), shapes(seconds)) == (expected[outer], expected[inner])


# P9: Bessel function with its recurrence


def bessel_host(v, z):
    return scipy.special.jv(v, z).astype(np.asarray(z).dtype)


def like_second(v, z):
    return like_first(z)


def bessel_rule(jv):
    def rule(primals, tangents):
        (v, z), (_, dz) = primals, tangents
        below, above = jv(v - 1, z), jv(v + 1, z)
        return jv(v, z), dz * jnp.where(v == 0, -above, 0.5 * (below - above))

    return rule


def decorated_bessel(host):
    jv = jaxcb.pure(result="z")(host)
    jv.defjvp(bessel_rule(jv))
    return jv


def bessel_of(pure_callback):
    def make(host):
        @jax.custom_jvp
        def jv(v, z):
            return pure_callback(host, like_second(v, z), v, z, vmap_method="sequential")

        jv.defjvp(bessel_rule(jv))
        return jv

    return make


BESSELS = {
    "jax": bessel_of(jax.pure_callback),
    "drop-in": bessel_of(jaxcb.pure_callback),
    "decorator": decorated_bessel,
}
bessels = pytest.mark.parametrize("make", BESSELS.values(), ids=BESSELS)
Z = np.float32([0.5, 1.5, 2.5, 4.0])


@pytest.fixture
def bessel_spy():
    seen = []

    def bessel(v, z):
        v, z = np.asarray(v), np.asarray(z)
        assert v.dtype == np.int32
        seen.append((v.shape, z.shape))
        return bessel_host(v, z)

    return bessel, seen


@bessels
@pytest.mark.parametrize("v", [0, 1, 3])
def test_bessel_function_equals_that_of_scipy(make, bessel_spy, run, v):
    """P9: plain and jit once, vmap once per lane."""
    host, seen = bessel_spy
    jv = make(host)
    expected = scipy.special.jv(v, Z)
    np.testing.assert_allclose(run(jv, np.int32(v), Z), expected, rtol=1e-5)
    np.testing.assert_allclose(run(jax.jit(jv), np.int32(v), Z), expected, rtol=1e-5)
    assert seen == 2 * [((), (4,))]
    seen.clear()
    mapped = jax.vmap(jv, in_axes=(None, 0))
    np.testing.assert_allclose(run(mapped, np.int32(v), Z), expected, rtol=1e-5)
    np.testing.assert_allclose(run(jax.jit(mapped), np.int32(v), Z), expected, rtol=1e-5)
    assert seen == 8 * [((), ())]


@bessels
@pytest.mark.parametrize(
    ("v", "order", "calls"), [(0, 1, 1), (2, 1, 2), (2, 2, 4), (0, 3, 6), (2, 3, 7)]
)
def test_every_derivative_of_bessel_equals_that_of_scipy(make, bessel_spy, run, v, order, calls):
    """P9: first, second and third, at a point and over all of Z; dead calls are gone."""

    def derivative(jv):
        f = lambda z: jv(np.int32(v), z)  # noqa: E731
        for _ in range(order):
            f = jax.grad(f)
        return f

    host, seen = bessel_spy
    expected = scipy.special.jvp(v, Z, order)
    f = jax.jit(derivative(make(host)))
    np.testing.assert_allclose(run(f, Z[1]), expected[1], rtol=1e-4, atol=1e-6)
    assert seen == calls * [((), ())]
    seen.clear()
    answer = run(jax.jit(jax.vmap(derivative(make(host)))), Z)
    np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-6)
    assert seen == 4 * calls * [((), ())]


@bessels
def test_bessel_gradient_outside_of_jit_equals_that_of_scipy(make, bessel_spy, run):
    """P9: the value and both neighbours, each once."""
    host, seen = bessel_spy
    value, slope = run(jax.value_and_grad(make(host), argnums=1), np.int32(1), Z[0])
    np.testing.assert_allclose(value, scipy.special.jv(1, Z[0]), rtol=1e-5)
    np.testing.assert_allclose(slope, scipy.special.jvp(1, Z[0]), rtol=1e-5)
    assert len(seen) == 3


def test_differentiation_without_a_rule_is_an_error_that_names_function_and_way_out(our_pure, spy):
    """P3: said while tracing, so no call."""
    host, seen = spy(np.sin)
    with pytest.raises(ValueError, match=r"cannot differentiate .*sin.* rule"):
        jax.grad(lambda x: our_pure(host, like_first)(x).sum())(FIVE)
    assert seen == []


def test_reverse_rule_is_used_under_grad(spy, run):
    """P3 with defvjp: one call forward, and the rule's own JAX code backward."""
    host, seen = spy(lambda x: np.sin(x))
    sin = jaxcb.pure(result="x", vmap_method="expand_dims")(host)
    sin.defvjp(lambda x: (sin(x), x), lambda x, ct: (ct * jnp.cos(x),))
    np.testing.assert_allclose(run(jax.grad(lambda x: sin(x).sum()), FIVE), np.cos(FIVE), rtol=1e-6)
    assert len(seen) == 1


# P13: what crosses, crosses exactly

EXACT = {
    "bool": [True, False, True, True, False, False],
    "int8": [-128, 127, 0, -1, 5, 7],
    "int16": [-(2**15), 2**15 - 1, 0, -1, 5, 7],
    "int32": [-(2**31), 2**31 - 1, 0, -1, 5, 7],
    "uint8": [0, 255, 1, 2, 3, 4],
    "uint16": [0, 2**16 - 1, 1, 2, 3, 4],
    "uint32": [0, 2**32 - 1, 1, 2, 3, 4],
    "float16": [1 / 3, -0.0, np.inf, -np.inf, np.nan, 65504],
    "bfloat16": [1 / 3, -0.0, np.inf, -np.inf, np.nan, 3.3895e38],
    "float32": [1 / 3, -0.0, np.inf, -np.inf, np.nan, 3.4028235e38],
    "complex64": [1 / 3 + 2j, -0.0, np.inf, 1 - 5j, np.nan, 3.4028235e38j],
}
EXACT_64 = {
    "int64": [-(2**63), 2**63 - 1, 0, 2**40 + 7, 5, 7],
    "uint64": [0, 2**64 - 1, 1, 2**40 + 7, 3, 4],
    "float64": [1 / 3, -0.0, np.inf, -np.inf, np.nan, 1e300],
    "complex128": [1 / 3 + 2j, -0.0, np.inf, 1e300j, np.nan, 1 + 1e-15j],
}
extents = pytest.mark.parametrize("shape", [(), (2, 3)], ids=str)


def exact_array(dtype, numbers, shape):
    values = np.array(numbers, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    return np.array(values[: math.prod(shape)].reshape(shape))


def assert_same_bits(a, b):
    a, b = np.asarray(a), np.asarray(b)
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    assert a.tobytes() == b.tobytes()


@extents
@pytest.mark.parametrize(("dtype", "numbers"), EXACT.items(), ids=EXACT)
def test_every_dtype_crosses_exactly_both_ways(pure, spy, run, dtype, numbers, shape):
    """P13: eager and compiled, 0-d too."""
    x = exact_array(dtype, numbers, shape)
    host, seen = spy(lambda x: np.array(x))
    f = pure(host, jax.ShapeDtypeStruct(x.shape, x.dtype))
    assert_same_bits(run(f, x), x)
    assert_same_bits(run(jax.jit(f), x), x)
    assert len(seen) == 2
    for (got,) in seen:
        assert_same_bits(got, x)


@extents
@pytest.mark.parametrize(("dtype", "numbers"), EXACT_64.items(), ids=EXACT_64)
def test_every_64_bit_dtype_crosses_exactly_in_an_x64_context(
    our_pure, spy, run, dtype, numbers, shape
):
    """P13: the context is this thread's; the host function may run on another one."""
    x = exact_array(dtype, numbers, shape)
    host, seen = spy(lambda x: np.array(x))
    with jax.enable_x64(True):
        f = our_pure(host, jax.ShapeDtypeStruct(x.shape, x.dtype))
        assert_same_bits(run(f, x), x)
        assert_same_bits(run(jax.jit(f), x), x)
    assert len(seen) == 2
    for (got,) in seen:
        assert_same_bits(got, x)


@pytest.mark.parametrize("shape", [(0,), (2, 0)], ids=str)
@pytest.mark.parametrize("dtype", ["bool", "int8", "bfloat16", "float32", "complex64"])
def test_argument_of_size_0_crosses_in_its_shape(pure, spy, run, dtype, shape):
    """P13: beside a result that has a value, so that there is something to call for."""
    x = np.zeros(shape, jnp.dtype(dtype))
    host, seen = spy(lambda x: (np.array(x), np.float32(x.size + 1)))
    f = pure(host, (jax.ShapeDtypeStruct(x.shape, x.dtype), SCALAR))
    for g in (f, jax.jit(f)):
        empty, one = run(g, x)
        assert_same_bits(empty, x)
        assert one == 1
    assert len(seen) == 2
    for (got,) in seen:
        assert_same_bits(got, x)


@pytest.mark.parametrize("compiled", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    "result",
    [jax.ShapeDtypeStruct((0,), np.float32), jax.ShapeDtypeStruct((2, 0), np.float32), (), None],
    ids=str,
)
def test_result_without_any_value_is_not_called_for(pure, run, result, compiled):
    """P13: nothing can depend on it, so XLA makes no call, eager or compiled."""
    seen = []

    def host(x):
        seen.append(x)
        return jax.tree.map(lambda declared: np.zeros(declared.shape, declared.dtype), result)

    answer = run(compiled(pure(host, result)), FIVE)
    assert jax.tree.structure(answer) == jax.tree.structure(result)
    assert [a.shape for a in jax.tree.leaves(answer)] == [
        declared.shape for declared in jax.tree.leaves(result)
    ]
    assert seen == []


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64", "complex128"])
def test_64_bit_values_survive_on_worker_threads(our_pure, run, dtype):
    """P13: large operands still being computed while the next programs are dispatched."""
    seen = []

    def host(x):
        seen.append((x.dtype.name, x.flat[0].item(), x.flat[-1].item()))
        return x + x.dtype.type(1)

    big = 2**40 + 7
    with jax.enable_x64(True):
        f = our_pure(host, like_first)
        program = jax.jit(lambda x, i: f((x + i) @ jnp.eye(300, dtype=dtype)))
        x = jnp.full((300, 300), big, dtype)
        answers = [program(x, jnp.asarray(i, dtype)) for i in range(20)]
        for i, answer in enumerate(answers):
            np.testing.assert_array_equal(answer, np.full((300, 300), big + i + 1, dtype))
    assert len(seen) == 20
    assert sorted(seen, key=lambda call: call[1].real) == [
        (dtype, big + i, big + i) for i in range(20)
    ]


def test_64_bit_lanes_survive_vmap_and_loops(our_pure, spy, run):
    """P13: 15 calls, one per lane and step."""
    host, seen = spy(lambda x: x + np.int64(1))
    with jax.enable_x64(True):
        f = our_pure(host, like_first, vmap_method="sequential")

        def three_steps(x):
            return lax.scan(lambda c, _: (f(c), None), x, None, 3)[0]

        x = 2**40 + np.arange(5)
        answer = run(jax.jit(jax.vmap(three_steps)), x)
    assert_same_bits(answer, x + 3)
    assert len(seen) == 15
    assert {x.dtype.name for (x,) in seen} == {"int64"}


@pytest.mark.parametrize("numbers", [np.ones(3), np.arange(3), 1.0, 2], ids=repr)
def test_64_bit_arguments_arrive_as_jax_holds_them(pure, spy, run, numbers):
    """P13 without x64: 32 bits, as in any JAX program."""
    host, seen = spy(lambda x: x * 2)
    held = jnp.asarray(numbers)
    f = pure(host, jax.ShapeDtypeStruct(held.shape, held.dtype))
    assert_same_bits(run(f, numbers), np.asarray(held) * 2)
    ((got,),) = seen
    assert_same_bits(got, held)


def test_non_contiguous_arguments_arrive_in_their_own_order(pure, spy, run):
    """P13: transposed and strided views."""
    host, seen = spy(lambda x: x * 2)
    f = pure(host, like_first)
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    for view in (
        base.T,
        base[::2, ::-3],
        np.asfortranarray(base),
        np.broadcast_to(base[0], (2, 6)),
    ):
        assert_same_bits(run(f, view), np.ascontiguousarray(view) * 2)
    assert_same_bits(run(jax.jit(lambda x: f(x.T)), base), np.ascontiguousarray(base.T) * 2)
    assert len(seen) == 5


def test_host_function_gets_plain_read_only_numpy_arrays(our_pure, run):
    """Ours, not JAX's: nothing the host does to them can reach JAX, or wait for it."""
    seen = []

    def host(x, tree):
        for array in (x, *tree):
            seen.append((type(array), array.flags.writeable))
        return x + 1

    f = our_pure(host, like_first, vmap_method="sequential")
    for g in (f, jax.jit(f)):
        np.testing.assert_array_equal(run(g, FIVE, (ZERO, FIVE)), FIVE + 1)
    run(jax.vmap(f), FIVE, (FIVE, FIVE))
    assert seen == (2 + 5) * 3 * [(np.ndarray, False)]


def test_host_function_may_keep_its_arguments_for_ever(our_pure, run):
    """They are copies: what comes later does not change them."""
    kept = []

    def host(x):
        kept.append(x)
        return x + 1

    f = our_pure(host, like_first)
    loop = jax.jit(lambda x: lax.fori_loop(0, 20, lambda _, c: f(c), x))
    for _ in range(3):
        np.testing.assert_array_equal(
            run(loop, np.zeros((50, 50), np.float32)), np.full((50, 50), 20)
        )
    assert [(x.min(), x.max()) for x in kept] == 3 * [(i, i) for i in range(20)]


def test_host_function_may_run_jax_and_other_callbacks(our_pure, spy, run):
    """One call in the other; no lock is held around them."""
    inner, seen = spy(np.sin)
    f = our_pure(inner, like_first)
    g = our_pure(lambda x: np.asarray(jax.jit(f)(np.asarray(x))) + 1, like_first)
    np.testing.assert_allclose(run(g, np.float32(2)), np.sin(np.float32(2)) + 1, rtol=1e-6)
    assert len(seen) == 1
