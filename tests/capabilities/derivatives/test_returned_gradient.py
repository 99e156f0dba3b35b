"""``gradient=``: functions that return value and gradient in one host call."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

THETA = np.float32([0.5, 1.0, 2.0])


def counted(**options):
    calls = []

    def simulate(theta):
        calls.append(np.shape(theta))
        return np.sin(theta).sum(-1), np.cos(theta)

    return jaxcb.pure(simulate, result="theta.shape[:0]", gradient="theta", **options), calls


def expected(theta):
    return jnp.sin(theta).sum()


def close(found, wanted):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5), found, wanted)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    "derivative",
    [
        jax.grad,
        jax.value_and_grad,
        jax.jacrev,
        lambda f: f,
        lambda f: lambda x: jax.jvp(f, (x,), (x,)),
        lambda f: lambda x: jax.linearize(f, x)[1](x),
    ],
    ids=["grad", "value_and_grad", "jacrev", "none", "jvp", "linearize"],
)
def test_value_and_its_derivative_take_one_host_call(wrap, derivative):
    simulate, calls = counted()
    close(wrap(derivative(simulate))(THETA), derivative(expected)(THETA))
    assert calls == [(3,)]


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_gradients_of_a_batch_are_those_of_its_elements(method):
    simulate, calls = counted(vmap_method=method)
    rows = np.stack([THETA, 2 * THETA])
    close(jax.jit(jax.vmap(jax.value_and_grad(simulate)))(rows), (
        jnp.sin(rows).sum(-1), jnp.cos(rows),
    ))  # fmt: skip
    close(jax.grad(lambda rows: jax.vmap(simulate)(rows).sum())(rows), jnp.cos(rows))
    assert len(calls) == (4 if method == "sequential" else 2)


def test_gradient_in_loops_is_that_of_each_step():
    simulate, calls = counted()

    def total(f, theta):
        return jax.lax.scan(lambda c, k: (c + f(k * theta), None), 0.0, jnp.arange(1.0, 4.0))[0]

    found = jax.jit(jax.grad(lambda theta: total(simulate, theta)))(THETA)
    close(found, jax.grad(lambda theta: total(expected, theta))(THETA))
    assert len(calls) == 3


def test_several_results_and_parameters_have_the_jacobian_of_jax():
    def f(a, n, *, b):
        y = {"s": a["x"] * b, "n": n}
        jacobian = {"s": ({"x": np.diag(np.broadcast_to(b, 3))}, np.asarray(a["x"])), "n": None}
        return y, jacobian

    g = jaxcb.pure(f, result="{'s': a['x'], 'n': n}", gradient=("a", "b"))

    def of_both(f, x, b):
        return f({"x": x}, 2, b=b)["s"]

    b = np.float32(3)
    for derivative in (jax.jacfwd, jax.jacrev):
        found = derivative(lambda x, b: of_both(g, x, b), (0, 1))(THETA, b)
        close(found, derivative(lambda x, b: x * b, (0, 1))(THETA, b))


def test_masked_calls_have_a_gradient_where_their_mask_is_true():
    simulate, calls = counted()
    rows, mask = np.stack([THETA, 2 * THETA]), np.array([False, True])
    found = jax.jit(
        jax.grad(
            lambda rows: jax.vmap(lambda m, x: simulate.where(m, x, otherwise=0))(mask, rows).sum()
        )
    )(rows)
    close(found, jnp.where(mask[:, None], jnp.cos(rows), 0))
    assert calls == [(3,)]


def test_second_derivative_is_refused_with_a_way_out():
    simulate, _ = counted()
    with pytest.raises(TypeError, match=r"cannot differentiate simulate twice.*defjvp"):
        jax.hessian(simulate)(THETA)


def test_derivative_by_another_parameter_is_refused_with_the_parameters_it_has():
    g = jaxcb.pure(lambda a, b: (a * b, b), result="a", gradient="a")
    assert jax.grad(g)(2.0, 3.0) == 3.0
    with pytest.raises(ValueError, match="by other arguments than a, by which it returns"):
        jax.grad(g, 1)(2.0, 3.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gradient": "b"}, "it has no parameter 'b'"),
        ({"gradient": ("a", "a")}, "each once, as in gradient='theta' or"),
        ({"gradient": "a b"}, "name the parameters by which the function returns its gradient"),
        ({"gradient": "a", "derivative": "finite"}, "the function returns its derivative itself"),
        ({"gradient": "a", "result": "infer"}, "it would infer both"),
    ],
)
def test_gradient_that_cannot_be_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        jaxcb.pure(lambda a: (a, a), **{"result": "a", **options})


def test_function_with_unknown_parameters_is_refused_in_words():
    words = r"cannot use gradient='t' of .*: its parameters are unknown\. Wrap it, as in def f\(t\)"
    with pytest.raises(TypeError, match=words):
        jaxcb.pure(max, result=float, gradient="t")


def test_gradient_of_another_shape_is_an_error_that_names_it():
    g = jaxcb.pure(lambda a: (a.sum(), a[:2]), result="a.shape[:0]", gradient="a")
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"\(2,\), .* and then those of a\."):
        g(THETA)


def test_check_takes_value_and_gradient():
    simulate, _ = counted()
    found = jaxcb.check(jaxcb.pure(simulate.__wrapped__, result="theta.shape[:0]",
                                   gradient="theta"), THETA)  # fmt: skip
    assert "declared result" in found.kept
    assert "derivative rule" in found.kept


def test_gradient_with_a_part_too_many_is_told_which_parameter_each_place_is_for():
    both = jaxcb.pure(
        lambda x, y: (x.sum(), (x, y, y)), result="x[0]", gradient="x,y", vmap_method="sequential"
    )
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.grad(both)(jnp.ones(3), jnp.ones(3))
    words = str(jaxcb.host_error(caught.value))
    assert "[1][2] was not expected." in words and "declare" not in words
    assert "[1] the gradient; [1][0] is that by x; [1][1] is that by y." in words
