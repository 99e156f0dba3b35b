"""Fit a black-box simulator, SciPy's solve_ivp, to data by its gradient, under jit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

import jupyter_jaxcb as jaxcb

TIMES = np.linspace(0, 6, 25)
START = (2.0, 1.0)  # prey, predators
TRUTH = np.float32([1.1, 0.6])  # growth of the prey, appetite of the predators
FIRST = jnp.float32([0.8, 0.9])


def flow(state, growth, appetite):
    """Return the right-hand side of the Lotka-Volterra equations, for numbers or arrays."""
    prey, predators = state
    return prey * (growth - appetite * predators), predators * (appetite * prey - 1.0)


def integrate(right_hand_side, start):
    solved = scipy.integrate.solve_ivp(
        right_hand_side, (0, TIMES[-1]), start, t_eval=TIMES, rtol=1e-6, atol=1e-8
    )
    return solved.y.T


def simulate(parameters):
    growth, appetite = map(float, parameters)
    return integrate(lambda t, state: flow(state, growth, appetite), START)


def simulate_with_sensitivity(parameters):
    """Return the states and their derivatives by both parameters, from sensitivity equations."""
    growth, appetite = map(float, parameters)

    def right_hand_side(t, state):
        prey, predators, *rest = state
        sensitivity = np.reshape(rest, (2, 2))
        by_state = np.array(
            [
                [growth - appetite * predators, -appetite * prey],
                [appetite * predators, appetite * prey - 1.0],
            ]
        )
        by_parameters = np.array([[prey, -prey * predators], [0.0, prey * predators]])
        moved = by_state @ sensitivity + by_parameters
        return [*flow((prey, predators), growth, appetite), *moved.ravel()]

    solved = integrate(right_hand_side, [*START, 0, 0, 0, 0])
    return solved[:, :2], solved[:, 2:].reshape(-1, 2, 2)


STATES = jax.ShapeDtypeStruct((len(TIMES), 2), np.float32)
SENSITIVITY = jax.ShapeDtypeStruct((len(TIMES), 2, 2), np.float32)
DATA = simulate(TRUTH).astype(np.float32)
DATA.flags.writeable = False


def with_differences():
    return jaxcb.pure(simulate, result=STATES, derivative="finite")


def with_forward_rule():
    states = jaxcb.pure(simulate, result=STATES)
    both = jaxcb.pure(simulate_with_sensitivity, result=(STATES, SENSITIVITY))

    @states.defjvp
    def rule(primals, tangents):
        found, sensitivity = both(*primals)
        return found, sensitivity @ tangents[0]

    return states


def with_reverse_rule():
    states = jaxcb.pure(simulate, result=STATES)
    both = jaxcb.pure(simulate_with_sensitivity, result=(STATES, SENSITIVITY))
    states.defvjp(both, lambda sensitivity, ct: (jnp.einsum("ts,tsp->p", ct, sensitivity),))
    return states


def descend(states):
    """Minimize the squared distance by gradient descent with momentum, in one compiled loop."""

    def loss(parameters):
        return jnp.mean((states(parameters) - DATA) ** 2)

    @jax.jit
    def run(parameters):
        def step(carry, _):
            parameters, speed = carry
            value, slope = jax.value_and_grad(loss)(parameters)
            speed = 0.6 * speed - 0.03 * slope
            return (parameters + speed, speed), value

        return jax.lax.scan(step, (parameters, jnp.zeros(2)), length=80)

    (found, _), losses = run(FIRST)
    return found, losses


def check_fit(found):
    np.testing.assert_allclose(found, TRUTH, rtol=1e-2)


@pytest.mark.long
def test_gradient_descent_with_finite_differences_finds_the_known_parameters():
    found, losses = descend(with_differences())
    check_fit(found)
    assert losses[-1] < 1e-4 * losses[0]


def test_all_rules_give_the_same_gradient():
    def gradient(states):
        return jax.jit(jax.grad(lambda p: jnp.mean((states(p) - DATA) ** 2)))(FIRST)

    by_rule = gradient(with_reverse_rule())
    np.testing.assert_allclose(gradient(with_forward_rule()), by_rule, rtol=1e-4)
    np.testing.assert_allclose(gradient(with_differences()), by_rule, rtol=1e-3)
