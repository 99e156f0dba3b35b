"""Compiled callbacks do in every transformation of JAX what the Python callback does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

SCALAR = jax.ShapeDtypeStruct((), np.float32)
X, XS = np.float32(0.7), np.float32([0.4, 1.1, 1.9])


def cube(x, y):
    return x * x * x - y


def derivative(x, y):
    return 3 * x * x


def pure(compiler, **options):
    """Return ``x ** 3 - y``, compiled or not, without a derivative."""
    return jaxcb.pure(cube, result="x", compile=compiler, **options)


def with_jvp(compiler):
    callback = pure(compiler)
    slope = jaxcb.pure(derivative, result="x", compile=compiler)
    callback.defjvp(lambda primals, tangents: (
        callback(*primals), slope(*primals) * tangents[0] - tangents[1]
    ))  # fmt: skip
    return callback


def with_vjp(compiler):
    callback = pure(compiler)
    slope = jaxcb.pure(derivative, result="x", compile=compiler)
    callback.defvjp(lambda x, y: (callback(x, y), (x, y)), lambda saved, g: (slope(*saved) * g, -g))
    return callback


def io(compiler):
    return jaxcb.io(cube, result="x", compile=compiler)


def write(out, x, y):
    out[...] = x * x * x - y


def buffer(compiler):
    return jaxcb.buffer(write, result="x", compile=compiler)


def side_effect_buffer(compiler):
    return jaxcb.buffer(write, result="x", has_side_effect=True, compile=compiler)


def finite(compiler):
    return pure(compiler, derivative="finite")


def scan(f):
    return jax.jit(lambda x: jax.lax.scan(lambda c, x: (f(c, x), c), x, XS))(X)


def while_loop(f):
    return jax.jit(lambda x: jax.lax.while_loop(lambda x: f(x, x) < 5, lambda x: x + 0.5, x))(X)


PROGRAMS = {
    "eager": lambda f: f(X, X),
    "jit": lambda f: jax.jit(f)(X, X),
    "nested jit": lambda f: jax.jit(lambda x: jax.jit(f)(x, x) + f(x, 2 * x))(X),
    "eager vmap": lambda f: jax.vmap(f, (0, None))(XS, X),
    "vmap": lambda f: jax.jit(jax.vmap(f, (None, 0)))(X, XS),
    "three vmaps": lambda f: jax.jit(jax.vmap(jax.vmap(jax.vmap(f), (0, None))))(
        np.arange(12, dtype=np.float32).reshape(2, 2, 3), XS * np.float32([[1], [9]])
    ),
    "arrays": lambda f: jax.jit(f)(XS, XS[::-1]),
    "scan": scan,
    "vmap of scan": lambda f: jax.vmap(
        lambda x: jax.lax.scan(lambda c, x: (f(c, x), c), x, XS)
    )(XS),
    "while_loop": while_loop,
    "fori_loop": lambda f: jax.lax.fori_loop(0, 4, lambda i, x: f(x, x / 2), X),
    "cond": lambda f: [
        jax.jit(lambda x, y: jax.lax.cond(x > y, f, lambda x, y: y, x, y))(X, y) for y in (0.5, 1.0)
    ],
    "map": lambda f: jax.lax.map(lambda x: f(x, X), XS),
    "unused": lambda f: jax.jit(lambda x: (f(x, x), x)[1])(X),
}  # fmt: skip
DERIVATIVES = {
    "jvp": lambda f: jax.jvp(f, (X, X), (X, X)),
    "grad": lambda f: jax.jit(jax.value_and_grad(f, (0, 1)))(X, X),
    "eager grad": lambda f: jax.grad(f)(X, X),
    "vmap of grad": lambda f: jax.jit(jax.vmap(jax.grad(f, (0, 1)), (0, None)))(XS, X),
    "grad of vmap": lambda f: jax.grad(lambda x: jax.vmap(f)(x, XS).sum())(XS),
    "grad of checkpoint": lambda f: jax.jit(jax.grad(jax.checkpoint(f)))(X, X),
    "grad of scan": lambda f: jax.jit(jax.grad(
        lambda x: jax.lax.scan(lambda c, x: (f(c, x), None), x, XS)[0]
    ))(X),
    "jacobian": lambda f: jax.jacrev(lambda x: jax.vmap(f)(x, x))(XS),
}  # fmt: skip
FLAVORS = (pure, io, buffer, side_effect_buffer)


def outcome(program, callback):
    with jaxcb.record() as r:
        result = jax.block_until_ready(program(callback))
    return result, len(r.recording), sorted(call.element for call in r.recording)


def compare(program, make):
    result, *calls = outcome(program, make("numba"))
    expected, *python_calls = outcome(program, make(None))
    assert calls == python_calls
    assert jax.tree.structure(result) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(result), jax.tree.leaves(expected), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("make", FLAVORS)
def test_values_and_calls_are_those_of_the_python_callback(program, make):
    compare(PROGRAMS[program], make)


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "program"),
    [
        (make, program)
        for make in (with_jvp, with_vjp, finite)
        for program in DERIVATIVES
        if (make, program) != (with_vjp, "jvp")  # JAX has no jvp of a custom_vjp
    ],
)
def test_derivatives_are_those_of_the_python_callback(program, make):
    compare(DERIVATIVES[program], make)


def test_finite_differences_come_close_to_the_derivative():
    slope = jax.jit(jax.grad(finite("numba")))(X, X)
    np.testing.assert_allclose(slope, 3 * X * X, rtol=1e-4)


def test_side_effects_happen_though_their_results_are_not_used(note):
    append, got = note
    callback = jaxcb.io(lambda x: append(x), result=SCALAR, compile="numba")
    jax.jit(lambda x: (callback(x), callback(2 * x), x)[2])(jnp.float32(1)).block_until_ready()
    jax.effects_barrier()
    assert sorted(got) == [1, 2]


def test_compiled_callbacks_without_a_rule_refuse_derivatives():
    with pytest.raises(ValueError, match="defjvp"):
        jax.grad(pure("numba"))(X, X)


def test_disabled_callbacks_are_left_out_of_programs(note):
    append, got = note

    def send(x):
        append(x)

    callback = jaxcb.io(send, result=None, compile="numba")
    with jaxcb.disabled():
        jax.jit(lambda x: callback(x))(1.0)
    jax.effects_barrier()
    assert got == []
    jax.jit(lambda x: callback(x))(2.0)
    jax.effects_barrier()
    assert got == [2]
