"""Under jax.checkpoint the policy decides whether the backward pass calls the host again."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name

import jupyter_jaxcb as jaxcb
from tests.conformance._parameters import SCALAR, ordered_or_not
from tests.conformance.conftest import DEBUG

pytestmark = pytest.mark.slow

KEEP = jax.checkpoint_policies
SAVING = {
    "everything": KEEP.everything_saveable,
    "this name": KEEP.save_only_these_names("result"),
    "all but another name": KEEP.save_anything_except_these_names("other"),
    "any name but another": KEEP.save_any_names_but_these("other"),
    "dots or this name": KEEP.save_from_both_policies(
        KEEP.dots_saveable, KEEP.save_only_these_names("result")
    ),
}
FORGETTING = {
    "default": None,
    "nothing": KEEP.nothing_saveable,
    "dots": KEEP.dots_saveable,
    "dots without batch": KEEP.dots_with_no_batch_dims_saveable,
    "another name": KEEP.save_only_these_names("other"),
    "any name but this": KEEP.save_any_names_but_these("result"),
}
POLICIES = SAVING | FORGETTING
X = np.float32(0.5)


def differentiable(pure):
    """Return a host ``sin`` with a host ``cos`` as its derivative, and a list of called names."""
    calls = []

    def noting(function):
        def host(x):
            calls.append(function.__name__)
            return function(np.asarray(x))

        return pure(host, SCALAR)

    host_sin, host_cos = noting(np.sin), noting(np.cos)
    sin = jax.custom_jvp(lambda x: host_sin(x))
    cos = jax.custom_jvp(lambda x: host_cos(x))
    sin.defjvp(lambda primals, tangents: (sin(*primals), cos(*primals) * tangents[0]))
    cos.defjvp(lambda primals, tangents: (cos(*primals), -sin(*primals) * tangents[0]))
    return sin, calls


def checkpointed(f, policy):
    return jax.checkpoint(lambda x: jnp.sin(checkpoint_name(f(x), "result")), policy=policy)


PROGRAMS = {
    "value": lambda g: g(X),
    "jit": lambda g: jax.jit(g)(X),
    "grad": lambda g: jax.grad(g)(X),
    "jit of grad": lambda g: jax.jit(jax.grad(g))(X),
    "jit of value_and_grad": lambda g: jax.jit(jax.value_and_grad(g))(X),
    "vjp, twice": lambda g: [jax.vjp(g, X)[1](ct) for ct in (X, X)],
    "linearize": lambda g: jax.linearize(g, X)[1](X),
    "jvp": lambda g: jax.jvp(g, (X,), (X,)),
    "hessian": lambda g: jax.jit(jax.hessian(g))(X),
    "remat of remat": lambda g: jax.grad(jax.checkpoint(lambda x: g(g(x))))(X),
    "scan": lambda g: jax.grad(
        lambda x: jax.lax.scan(lambda c, _: (g(c), None), x, None, length=3)[0]
    )(X),
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("policy", "name"),
    # The test after this one runs every policy, with JAX's callback too.
    [("default", name) for name in PROGRAMS]
    + [(policy, "jit of value_and_grad") for policy in ("everything", "nothing")],
)
def test_pure_callback_is_called_as_often_as_by_jax(our_pure, jax_pure, run, policy, name):
    policy = POLICIES[policy]
    (ours, calls), (theirs, jax_calls) = differentiable(our_pure), differentiable(jax_pure)
    returned_value = run(PROGRAMS[name], checkpointed(ours, policy))
    expected = run(PROGRAMS[name], checkpointed(theirs, policy))
    jax.tree.map(np.testing.assert_array_equal, returned_value, expected)
    assert collections.Counter(calls) == collections.Counter(jax_calls)
    assert calls


@pytest.mark.parametrize(
    ("policy", "again"),
    [(policy, 0) for policy in SAVING.values()] + [(policy, 1) for policy in FORGETTING.values()],
    ids=[*SAVING, *FORGETTING],
)
def test_pure_callback_is_called_again_if_its_result_was_not_saved(pure, run, policy, again):
    """Then the backward pass calls sin a second time; it calls cos once in any case."""
    f, calls = differentiable(pure)
    slope = run(jax.grad(checkpointed(f, policy)), X)
    np.testing.assert_allclose(slope, np.cos(np.sin(X)) * np.cos(X), rtol=1e-6)
    assert collections.Counter(calls) == {"sin": 1 + again, "cos": 1}


def test_pure_callback_with_defjvp_is_checkpointed_like_any_function(run):
    """The default policy saves nothing, so sin is called twice."""
    calls = []
    sin = jaxcb.pure(lambda x: calls.append("sin") or np.sin(x), result=SCALAR)
    cos = jaxcb.pure(lambda x: calls.append("cos") or np.cos(x), result=SCALAR)
    sin.defjvp(lambda primals, tangents: (sin(*primals), cos(*primals) * tangents[0]))
    slope = run(jax.grad(jax.checkpoint(lambda x: jnp.sin(sin(x)))), X)
    np.testing.assert_allclose(slope, np.cos(np.sin(X)) * np.cos(X), rtol=1e-6)
    assert collections.Counter(calls) == {"sin": 2, "cos": 1}


def watched(f):
    def product(x):
        y = jnp.stack([x, x])
        f(x)
        z = jnp.sin(y @ y)
        f(z)
        return checkpoint_name(jnp.sin(z), "result")

    return product


def cases(*groups):
    """Parametrize over the product of makers, policies and orders of each group.

    All makers bind the same primitive, so not every maker has to run with every policy.
    """
    found = [
        (maker, policy, ordered)
        for makers, policies, orders in groups
        for maker in makers
        for policy in policies
        for ordered in orders
    ]
    return pytest.mark.parametrize(
        ("maker", "policy", "ordered"),
        found,
        ids=["-".join((m, p, "ordered" if o else "unordered")) for m, p, o in found],
    )


FEW = ("default", "everything", "this name")


@pytest.mark.long
@cases((["decorator"], POLICIES, (False, True)), (["drop-in", "two-call"], FEW, (False,)))
def test_debug_callback_is_called_as_often_as_by_jax(jax_debug, run, note, maker, policy, ordered):
    found = []
    for debug in (DEBUG[maker], jax_debug):
        host, seen = note()
        g = jax.checkpoint(watched(debug(host, ordered=ordered)), policy=POLICIES[policy])
        slope = run(jax.jit(jax.grad(g)), X)
        found.append((slope, seen if ordered else sorted(seen)))
    assert found[0] == found[1]
    assert len(found[0][1]) >= 2


@cases((["decorator"], POLICIES, (False,)), (["decorator"], FEW, (True,)))
def test_vmapped_debug_callback_is_called_as_often_as_by_jax(
    jax_debug, run, note, maker, policy, ordered
):
    found = []
    for debug in (DEBUG[maker], jax_debug):
        host, seen = note()
        elements = jax.vmap(watched(debug(host, ordered=ordered)))
        g = jax.checkpoint(
            lambda x, elements=elements: jnp.sum(elements(x)), policy=POLICIES[policy]
        )
        slopes = run(jax.jit(jax.grad(g)), np.float32([0.5, 0.25]))
        found.append((slopes.tolist(), sorted(seen)))
    assert found[0] == found[1]
    assert len(found[0][1]) >= 4


REFUSED = {name: POLICIES[name] for name in FEW}


@ordered_or_not
@pytest.mark.parametrize("policy", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize(
    "differentiate",
    [jax.grad, lambda g: jax.jit(jax.grad(g)), lambda g: lambda x: jax.linearize(g, x)],
    ids=["grad", "jit of grad", "linearize"],
)
def test_differentiating_a_checkpoint_with_an_io_callback_is_refused(
    io, echo, policy, differentiate, ordered
):
    host, seen = echo()
    f = io(host, SCALAR, ordered=ordered)
    g = jax.checkpoint(lambda x: jnp.sin(x * f(jax.lax.stop_gradient(x))), policy=policy)
    with pytest.raises(NotImplementedError, match=r"Effects not supported in .* of `checkpoint`"):
        differentiate(g)(X)
    assert seen == []


@ordered_or_not
@pytest.mark.parametrize(
    "forward",
    [lambda g: g, jax.jit, lambda g: lambda x: jax.jvp(g, (x,), (x,))[0]],
    ids=["eager", "jit", "jvp"],
)
def test_io_callback_in_a_checkpoint_runs_once_in_the_forward_pass(io, run, echo, forward, ordered):
    host, seen = echo()
    f = io(host, SCALAR, ordered=ordered)
    g = jax.checkpoint(lambda x: jnp.sin(x * f(jax.lax.stop_gradient(x))))
    np.testing.assert_allclose(run(forward(g), X), np.sin(X * X), rtol=1e-6)
    assert seen == [X]
