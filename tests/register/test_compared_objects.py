"""Objects whose ``__eq__`` knows only its own kind, as host functions with derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb


class Sine:
    """A simulator with the comparison that many classes have."""

    def __init__(self):
        self.state = np.ones(3)

    def __eq__(self, other):
        return self.state == other.state

    __hash__ = None

    def __call__(self, x):
        return np.sin(x)


class NamelessSine(Sine):
    @property
    def __name__(self):
        raise RuntimeError("no name")


class SineAndSlope(Sine):
    def __call__(self, x):
        return np.sin(x), np.cos(x)


class SineInto(Sine):
    def __call__(self, out, x):
        out[...] = np.sin(x)


def by_rule(sine):
    sine.defjvp(lambda primals, tangents: (sine(*primals), jnp.cos(primals[0]) * tangents[0]))
    return sine


MADE = {
    "finite": lambda: jaxcb.pure(Sine(), result="x", derivative="finite"),
    "finite, nameless": lambda: jaxcb.pure(NamelessSine(), result="x", derivative="finite"),
    "gradient": lambda: jaxcb.pure(SineAndSlope(), result="x", gradient="x"),
    "rule": lambda: by_rule(jaxcb.pure(Sine(), result="x")),
    "rule, nameless": lambda: by_rule(jaxcb.pure(NamelessSine(), result="x")),
    "rule, buffer": lambda: by_rule(jaxcb.buffer(SineInto(), result="x")),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_object_that_cannot_be_compared_with_a_class_is_differentiated(make):
    sine, x = make(), np.float32(0.5)
    found = [
        jax.grad(sine)(x),
        jax.jit(jax.grad(sine))(x),
        jax.grad(lambda x: sine.where(x > 0, x, otherwise=0.0))(x),
    ]
    np.testing.assert_allclose(found, 3 * [np.cos(x)], rtol=1e-3)


def test_missing_transpose_of_such_an_object_is_an_error_with_its_name():
    with pytest.raises(ValueError, match=r"cannot transpose Sine.*linear='x'"):
        jax.linear_transpose(jaxcb.pure(Sine(), result="x"), 0.5)(1.0)
