"""Explanations equal runs for programs with derivative rules, batches and rarer primitives.

The status battery, which test_same_as_run.py uses, does not contain these programs.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import checkify

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import VMAP_METHODS
from tests.stack.elision._battery import Hosts

from ._same import check, explain_only, in_new_thread, run

X = np.arange(1, 4, dtype=np.float32)
N = np.arange(1, 4, dtype=np.int32)
PROGRAMS = {}


def program(name, *marks):
    def add(make):
        PROGRAMS[name] = pytest.param(make, id=name, marks=marks)
        return make

    return add


def differentiable(h):
    """Return a callback whose derivative calls `b`, whose derivative calls `c`."""
    a, b, c = h.pure("a"), h.pure("b"), h.pure("c")
    a.defjvp(lambda xs, ts: (a(*xs), b(*xs) * ts[0]))
    b.defjvp(lambda xs, ts: (b(*xs), c(*xs) * ts[0]))
    return a


def reverse_differentiable(h):
    """Return a callback with a reverse-mode rule."""
    a, b = h.pure("a"), h.pure("b")
    a.defvjp(lambda x: (a(x), x), lambda x, ct: (b(x) * ct,))
    return a


def total(f):
    return lambda x: f(x).sum()


DERIVATIVES = {
    "grad": lambda f: jax.grad(total(f)),
    "value_and_grad": lambda f: jax.value_and_grad(total(f)),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,)),
    "vjp": lambda f: lambda x: jax.vjp(f, x)[1](x),
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](x),
    "jacrev": lambda f: jax.jacrev(f),
    "jacfwd": lambda f: jax.jacfwd(f),
    "hessian": lambda f: jax.hessian(total(f)),
    "grad of remat": lambda f: jax.grad(total(jax.checkpoint(lambda x: jnp.sin(f(x))))),
    "grad of scan": lambda f: jax.grad(
        total(lambda x: lax.scan(lambda c, _: (f(c), None), x, length=3)[0])
    ),
    "grad of vmap": lambda f: jax.grad(total(jax.vmap(f))),
    "vmap of grad": lambda f: jax.vmap(jax.grad(total(f))),
    "grad of jit": lambda f: jax.grad(total(jax.jit(f))),
    "grad of cond": lambda f: jax.grad(total(lambda x: lax.cond(x.sum() > 0, f, lambda y: y, x))),
}
for name, derive in DERIVATIVES.items():
    program(f"{name}, by defjvp")(lambda h, derive=derive: (derive(differentiable(h)), (X,)))
    if name not in ("jvp", "linearize", "jacfwd", "hessian"):
        program(f"{name}, by defvjp")(
            lambda h, derive=derive: (derive(reverse_differentiable(h)), (X,))
        )

for method, size in itertools.product(VMAP_METHODS, (0, 1, 3)):
    xs = np.ones((size, 2), np.float32)

    @program(f"vmap of {size}, {method}")
    def _(h, method=method, xs=xs):
        a = h.pure("a", vmap_method=method)
        return jax.vmap(lambda x: a(x)), (xs,)

    @program(f"vmap of {size} in vmap of 2, {method}")
    def _(h, method=method, xs=xs):
        a = h.pure("a", vmap_method=method)
        return jax.vmap(jax.vmap(lambda x: a(x))), (np.stack([xs, xs]),)


for length in (0, 1, 5):

    @program(f"scan of {length} over io, debug and pure, one of them ordered")
    def _(h, length=length):
        a, b, c, d = h.pure("a"), h.io("b", ordered=True), h.debug("c"), h.pure("d")

        def body(x, i):
            c(x)
            return b(a(x)) + d(X), i

        return lambda x: lax.scan(body, x, np.arange(length)), (X,)

    @program(f"vmapped scan of {length}")
    def _(h, length=length):
        a = h.io("a")
        one = lambda x: lax.scan(lambda c, _: (a(c), None), x, length=length)[0]  # noqa: E731
        return jax.vmap(one), (np.ones((2, 3), np.float32),)


@program("two nested callbacks with different vmap methods")
def _(h):
    a, b = h.pure("a"), h.pure("b", vmap_method="expand_dims")
    return jax.vmap(lambda x, y: b(a(x) + y), in_axes=(0, None)), (X, np.float32(1))


@program("a switch of four, two of them with the same callback")
def _(h):
    a, b = h.pure("a"), h.io("b")
    branches = [lambda x: a(x), lambda x: b(x), lambda x: a(x + 1), lambda x: x]
    return lambda i, x: lax.switch(i, branches, x), (np.int32(2), X)


@program("a vmapped switch")
def _(h):
    a, b = h.pure("a"), h.pure("b")
    f = lambda i, x: lax.switch(i, [lambda x: a(x), lambda x: b(x)], x)  # noqa: E731
    return jax.vmap(f), (np.int32([0, 1, 1]), X)


@program("a callback behind both rules of custom_vmap")
def _(h):
    a, b = h.pure("a"), h.pure("b")
    g = jax.custom_batching.custom_vmap(lambda x: a(x))
    g.def_vmap(lambda size, batched, x: (b(x), batched[0]))
    return lambda x: g(x) + jax.vmap(g)(x), (X,)


@program("checkify around a callback")
def _(h):
    a = h.pure("a")
    return lambda x: checkify.checkify(lambda y: a(y))(x)[1], (X,)


@program("a callback on random numbers, vmapped over keys")
def _(h):
    a = h.pure("a")
    f = jax.vmap(lambda key: a(jax.random.normal(key, (2,))))
    return lambda key: f(jax.random.split(key, 3)), (jax.random.key(1),)


@program("platform_dependent")
def _(h):
    a, b = h.pure("a"), h.pure("b")
    return lambda x: lax.platform_dependent(x, cpu=lambda y: a(y), default=lambda y: b(y)), (X,)


@program("three flavors and a drop-in, on one line")
def _(h):
    a, b, c = h.pure("a"), h.io("b"), h.debug("c")
    other = h.host("d")
    return lambda x: (c(x), a(x) + b(x) + jaxcb.pure_callback(other, x, x))[1], (X,)


@program("a dictionary of arrays in and out")
def _(h):
    a = h.pure("a", result=lambda t: t, function=lambda t: t)
    return lambda t: a(t)["p"], ({"p": X, "q": (N, None)},)


@program("no array at all")
def _(h):
    a = h.draw("a")
    return lambda: a(), ()


@program("the operator of a conjugate gradient")
def _(h):
    a = h.pure("a")
    return lambda x: jax.scipy.sparse.linalg.cg(lambda v: a(v) * 2, x, maxiter=2)[0], (X,)


@program("an io callback in a solver")
def _(h):
    a = h.io("a")
    return lambda x: lax.custom_linear_solve(lambda v: v * 2, x, lambda m, y: a(y)), (X,)


@pytest.mark.long
@pytest.mark.parametrize("make", PROGRAMS.values())
@in_new_thread
def test_explanation_equals_the_run_and_a_second_explanation(make):
    explain_hosts, run_hosts = Hosts(), Hosts()
    made = make(explain_hosts)
    first, second = (explain_only(made, explain_hosts) for _ in range(2))
    check(first, *run(make(run_hosts), run_hosts))
    assert [o.status for o in first.outcomes] == [o.status for o in second.outcomes]
    assert [o.compiled for o in first.outcomes] == [o.compiled for o in second.outcomes]
