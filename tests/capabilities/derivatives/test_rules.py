"""defjvp and defvjp behave like jax.custom_jvp and custom_vjp under every transformation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ._rules import RULES, Theirs, ours

pytestmark = pytest.mark.slow

X, Y = np.float32(0.7), np.float32(1.3)
XS, YS = np.float32([0.4, 1.1, 1.9]), np.float32([1.2, -0.3, 0.5])
ONE, ONES = np.float32(1), np.ones(3, np.float32)


def scanned(g, x, y):
    return jax.lax.scan(lambda c, x: (c + g(x, c) / 4, c * x), y, x * XS)[0]


PROGRAMS = {
    "value": lambda g: g(X, Y),
    "jit": lambda g: jax.jit(g)(X, Y),
    "jvp": lambda g: jax.jvp(g, (X, Y), (ONE, ONE)),
    "jvp by one argument": lambda g: jax.jvp(lambda y: g(X, y), (Y,), (ONE,)),
    "vjp": lambda g: jax.vjp(g, X, Y)[1](ONE),
    "grad": lambda g: jax.grad(g, (0, 1))(X, Y),
    "jit of grad": lambda g: jax.jit(jax.value_and_grad(g, 1))(X, Y),
    "vmap": lambda g: jax.vmap(g)(XS, YS),
    "vmap of grad": lambda g: jax.vmap(jax.grad(g, (0, 1)), (0, None))(XS, Y),
    "jit of vmap of grad": lambda g: jax.jit(jax.vmap(jax.grad(g, (0, 1)), (None, 0)))(X, YS),
    "grad of vmap": lambda g: jax.grad(lambda x, y: jax.vmap(g, (0, None))(x, y).sum(), (0, 1))(
        XS, Y
    ),
    "jvp of vmap": lambda g: jax.jvp(lambda x: jax.vmap(g, (0, None))(x, Y), (XS,), (ONES,)),
    "vmap of vmap of grad": lambda g: jax.vmap(
        jax.vmap(jax.grad(g), (0, None)), (None, 0)
    )(XS, YS),
    "vmap with an axis at the end": lambda g: jax.vmap(
        lambda x, y: jax.vmap(jax.grad(g, 1))(x, y), (1, None), 1
    )(np.outer(XS, YS), YS),
    "jacfwd": lambda g: jax.jacfwd(g, (0, 1))(X, Y),
    "jacrev": lambda g: jax.jit(jax.jacrev(g, (0, 1)))(X, Y),
    "jacobian of vmap": lambda g: jax.jacrev(lambda x: jax.vmap(g)(x, YS))(XS),
    "hessian": lambda g: jax.jit(jax.hessian(g, (0, 1)))(X, Y),
    "grad of grad": lambda g: jax.jit(jax.grad(jax.grad(g)))(X, Y),
    "scan": lambda g: jax.jit(scanned, static_argnums=0)(g, X, Y),
    "grad of scan": lambda g: jax.jit(jax.grad(lambda x, y: scanned(g, x, y), (0, 1)))(X, Y),
    "jvp of scan": lambda g: jax.jvp(lambda x: scanned(g, x, Y), (X,), (ONE,)),
    "grad of checkpoint": lambda g: jax.grad(jax.checkpoint(g), (0, 1))(X, Y),
    "grad of cond": lambda g: jax.grad(
        lambda x: jax.lax.cond(x > 0, lambda x: g(x, Y), lambda x: x, x)
    )(X),
}  # fmt: skip


def outcome(program, g):
    """Return the result of the program, or the type of its error."""
    try:
        return jax.tree.map(np.asarray, program(g))
    except (TypeError, ValueError) as error:
        return type(error)


# The first two rules run in all programs. The others run in forward mode, in batched reverse mode
# and to the second order, and each in two of the remaining programs: what a program does with a
# rule does not depend on the arguments that the rule takes.
MODES = ("jvp", "jit of vmap of grad", "hessian")
IN_TURN = ("jvp of vmap", "jacrev", "grad of scan", "grad of checkpoint", "value", "grad")
CASES = [(rule, name) for rule in RULES[:2] for name in PROGRAMS]
CASES += [
    (rule, name)
    for number, rule in enumerate(RULES[2:])
    for name in (*MODES, *(IN_TURN[(2 * number + offset) % len(IN_TURN)] for offset in (0, 1)))
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("rule", "name"), CASES, ids=[f"{rule.__name__}-{name}" for rule, name in CASES]
)
def test_rule_of_a_callback_behaves_as_in_jax(rule, name):
    program = PROGRAMS[name]
    found, expected = outcome(program, rule(ours, np)), outcome(program, rule(Theirs, jnp))
    if isinstance(expected, type):
        assert found is expected
    else:
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6),
                     found, expected)  # fmt: skip


def test_only_forward_mode_through_reverse_rules_is_refused():
    """Without this, the comparison above could compare only errors."""
    refused = {
        (rule.__name__, name)
        for rule in RULES[:2]
        for name in ("grad", "jacfwd", "hessian", "jvp of vmap")
        if isinstance(outcome(PROGRAMS[name], rule(ours, np)), type)
    }
    reverse = RULES[1].__name__
    assert refused == {(reverse, "jacfwd"), (reverse, "hessian"), (reverse, "jvp of vmap")}
