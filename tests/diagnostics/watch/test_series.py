"""The numbers of variables, step by step, against NumPy."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.jax_compat import Primitive

MATRICES = np.random.default_rng(0).normal(size=(5, 3, 4)).astype(np.float32)


def named(seen, name, direction="forward"):
    (found,) = [s for s in seen.series if s.name == name and s.direction == direction]
    return found


def assert_is(series, arrays):
    """Assert that the numbers are those of `arrays`, one for each step."""
    for reduce, values in ((np.min, series.min), (np.mean, series.mean), (np.max, series.max)):
        np.testing.assert_allclose(values[:, 0], [reduce(x) for x in arrays], rtol=1e-5)


def double(carry, x):
    y = x * 2
    return carry, y.sum()


def test_variables_of_a_scan_have_their_numbers_by_step():
    def step(total, x):
        y = jnp.sin(x)
        total = total + y.sum()
        return total, y

    with jaxcb.watching() as seen:
        jax.jit(lambda xs: jax.lax.scan(step, 0.0, xs))(MATRICES)
    y = named(seen, "y")
    assert_is(y, np.sin(MATRICES))
    assert (y.shape, y.dtype, y.count) == ((3, 4), "float32", 5)
    assert y.steps.tolist() == [[0], [1], [2], [3], [4]]
    assert y.source == "y = jnp.sin(x)"
    assert_is(named(seen, "total"), np.cumsum(np.sin(MATRICES).sum(axis=(1, 2))))


def test_gradient_has_the_value_and_the_cotangent_of_a_variable():
    def loss(x):
        y = x**3
        return y.sum()

    with jaxcb.watching() as seen:
        for x in MATRICES:
            slope = jax.jit(jax.grad(loss))(x)
            del slope
    assert_is(named(seen, "y"), MATRICES**3)
    assert_is(named(seen, "y", "backward"), np.ones_like(MATRICES))
    assert_is(named(seen, "slope"), 3 * MATRICES**2)
    assert named(seen, "slope").steps.ravel().tolist() == [*range(5)]


def test_each_batch_element_has_its_numbers_and_many_elements_have_them_together():
    def f(x):
        y = x * 2
        return y.sum()

    with jaxcb.watching("y") as seen:
        jax.vmap(jax.jit(f))(MATRICES)
    np.testing.assert_allclose(named(seen, "y").mean[0], 2 * MATRICES.mean(axis=(1, 2)), rtol=1e-5)
    many = np.arange(40.0, dtype=np.float32)
    with jaxcb.watching("y") as seen:
        jax.vmap(jax.jit(f))(many[:, None])
    together = named(seen, "y")
    assert (together.min.tolist(), together.max.tolist()) == ([[0.0]], [[78.0]])
    assert together.mean.tolist() == [[39.0]]


def test_nan_and_infinite_values_are_counted_and_left_out_of_the_mean():
    with jaxcb.watching() as seen:
        x = jnp.array([1.0, jnp.nan, 3.0, jnp.inf, -jnp.inf])
        y = jax.jit(lambda x: x * 1)(x)
    for name in ("x", "y"):
        one = named(seen, name)
        assert (one.nan.tolist(), one.inf.tolist()) == ([[1]], [[2]])
        assert (one.min.item(), one.mean.item(), one.max.item()) == (1, 2, 3)
    del y


def test_values_of_branches_that_are_not_taken_do_not_count():
    def f(x):
        def positive(x):
            y = jnp.sqrt(x)
            return y

        return jax.lax.cond(x > 0, positive, lambda x: x, x)

    with jaxcb.watching("y") as seen:
        jax.vmap(f)(np.float32([4, -1, 9]))
    assert [(row.element, row.mean) for row in seen.rows] == [((0,), 2.0), ((2,), 3.0)]


def test_iterations_of_python_loops_count_as_steps():
    with jaxcb.watching("y") as seen:
        for _ in range(2):
            n = 0
            while n < 3:
                y = jnp.float32(n) * 2
                n += 1
    assert named(seen, "y").steps.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    del y


def test_reductions_of_the_user_are_numbers_too():
    with jaxcb.watching("y", norm=jnp.linalg.norm) as seen:
        jax.lax.scan(double, 0.0, MATRICES)
    expected = [np.linalg.norm(2 * x) for x in MATRICES]
    np.testing.assert_allclose(named(seen, "y").own["norm"][:, 0], expected, rtol=1e-5)


def test_every_sends_that_many_steps_and_finds_bad_values_in_all():
    def step(c, x):
        y = jnp.log(x)
        return c, y

    xs = np.float32([1, 1, 1, 1, -1, 1, 1])
    with jaxcb.watching("y", every=3) as seen:
        jax.lax.scan(step, 0.0, xs)
    assert named(seen, "y").steps.ravel().tolist() == [0, 3, 6]
    assert seen.first_bad.steps == (4,)


def test_names_choose_variables_and_integers_are_watched_if_named():
    with jaxcb.watching("n, loss") as seen:
        n = jnp.arange(3)
        loss = jnp.ones(2)
        other = loss * n[0]
    assert [series.name for series in seen.series] == ["n", "loss"]
    del other


def test_sink_gets_each_step_in_order_and_its_exception_ends_the_block():
    got = []
    with jaxcb.watching("y", to=lambda step, values: got.append((step, values))):
        jax.lax.scan(double, 0.0, np.float32([1, 2, 3]))
    assert got == [(0, {"y": 2.0}), (1, {"y": 4.0}), (2, {"y": 6.0})]
    with pytest.raises(ZeroDivisionError), jaxcb.watching(to=lambda step, values: 1 / 0):
        jax.lax.scan(double, 0.0, np.float32([1, 2, 3]))


def test_watched_function_returns_its_results_and_what_was_seen():
    @jax.jit
    def f(x):
        y = x + 1
        return y * 2

    g = jaxcb.watch(f, "y")
    assert g(1.0) == 4
    assert [series.name for series in g.seen.series] == ["y"]
    assert g.__name__ == "f"


def test_values_of_small_arrays_outside_of_vmap_are_kept():
    def step(x, k):
        y = x * k
        return x, y

    def run(x):
        return jax.lax.scan(step, x, jnp.arange(4.0))

    x = jnp.array([1.0, jnp.nan, 3.0])
    with jaxcb.watching("y") as seen:
        run(x)
        run(jnp.ones(9))
        jax.vmap(run)(x)
    small, large, batched = seen.series
    np.testing.assert_array_equal(small.values[:, 0], np.arange(4)[:, None] * np.asarray(x))
    assert (small.values.shape, large.values.size, batched.values.size) == ((4, 1, 3), 0, 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"every": 0}, "every=0 is not a number of steps"),
        ({"to": 3}, "to=3 is not a function"),
        ({"norm": 3}, "norm=3 is no option and no function"),
        ({"first": "x"}, "is not an expression of x that returns one boolean"),
        ({"first": "x >"}, "is not an expression of x that returns one boolean"),
        ({"names": "a b"}, "'a b' does not choose variables"),
    ],
)
def test_wrong_options_are_refused(options, words):
    for make in (jaxcb.watching, lambda **options: jaxcb.watch(abs, **options)):
        with pytest.raises(ValueError, match=words):
            make(**options)


def test_blocks_are_not_nested_and_leave_nothing_behind():
    bind = Primitive.bind
    f = jax.jit(functools.partial(double, 0.0))
    f(1.0)
    with jaxcb.watching("y") as seen:
        f(1.0)
        with pytest.raises(RuntimeError, match="while another block watches"), jaxcb.watching():
            pass
        assert Primitive.bind is not bind
    f(1.0)
    assert Primitive.bind is bind
    assert len(seen.rows) == 1
    with jaxcb.watching("y") as again:
        f(1.0)
    assert len(again.rows) == len(seen.rows) == 1


def test_all_values_of_a_step_cross_to_the_host_in_one_call():
    def step(c, x):
        y = x * 2
        z = y + c
        return z, y

    got = []
    with jaxcb.watching("y, z", to=lambda number, values: got.append((number, values))):
        jax.lax.scan(step, 0.0, np.float32([1, 2, 3]))
    assert got == [
        (0, {"y": 2.0, "z": 2.0}),
        (1, {"y": 4.0, "z": 6.0}),
        (2, {"y": 6.0, "z": 12.0}),
    ]


def test_table_and_totals_have_the_extremes_and_counts_of_steps_that_are_not_kept():
    def body(c, x):
        e = jnp.where(x == 1003, jnp.nan, jnp.where(x == 1005, jnp.inf, x * 0))
        d = jnp.where(x == 1001, 100.0, jnp.where(x == 1007, -7.0, e))
        return c, d > 0

    with jaxcb.watching("d") as seen:
        jax.lax.scan(body, 0.0, np.arange(50_000, dtype=np.float32))
    (d,) = seen.series
    steps = d.steps.ravel()
    assert not {1001, 1003, 1005, 1007} & {*steps.tolist()}
    assert d.totals == (-7, 100, 1, 1)
    assert len(steps) <= 20_000
    assert steps[-10_000:].tolist() == [*range(40_000, 50_000)]
    (row,) = [line.split() for line in str(seen).splitlines() if " d " in line]
    assert row[1:9] == ["d", "float32[]", "50,000", "-7", "0", "100", "1", "1"]
