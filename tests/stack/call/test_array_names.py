"""Operands and results are named as the host function's parameters and return value."""

import contextlib
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import jv

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.stack.call import ArrayNames, _array_names

SCALAR = jax.ShapeDtypeStruct((), np.float32)


class Weights(NamedTuple):
    slope: float
    offset: float


def wrapped_in_a_function(host):
    def wrapper(*args):
        return host(*args)

    wrapper.__wrapped__ = host
    return wrapper


class Model:
    def __call__(self, z):
        return z

    def predict(self, params):
        return params


class Untouchable:
    """A callable whose attributes must not be read."""

    def __getattribute__(self, name):
        raise SystemExit(name)

    def __call__(self, x):
        return x


def lowered(call, *args):
    """Return the `LoweredSite` of the one callback that a jitted `call` makes."""
    with jaxcb.observe_jax() as r:
        jax.block_until_ready(jax.jit(call)(*args))
    (fact,) = r.recording.lowered
    return fact


def names(function, *args, **kwargs):
    """Return the names of the operands of a pure callback of `function`."""
    fact = lowered(lambda: jaxcb.pure_callback(function, SCALAR, *args, **kwargs))
    return fact.operand_names


X = jnp.float32(1)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        pytest.param(lambda v, z: v, ("v", "z"), id="plain"),
        pytest.param(functools.partial(lambda k, v, z: v, 3), ("v", "z"), id="partial"),
        pytest.param(functools.partial(lambda v, z, k: v, k=3), ("v", "z"), id="keyword partial"),
        pytest.param(lambda v, *rest: v, ("v", "rest[0]"), id="varargs"),
        pytest.param(jv, ("v", "z"), id="documented ufunc"),
        pytest.param(np.hypot, ("x1", "x2"), id="numpy ufunc"),
        pytest.param(np.frompyfunc(lambda a, b: np.float32(a), 2, 1), (), id="bare ufunc"),
        pytest.param(max, (), id="builtin without a signature"),
    ],
)
def test_two_arguments_have_the_names_of_the_parameters(function, expected):
    assert names(function, X, X) == expected


def test_keyword_arguments_are_named_in_the_order_in_which_the_operands_are_flattened():
    assert names(lambda a, *, c, b=2: a, X, b=X, c=jnp.ones(3)) == ("a", "b", "c")
    assert names(lambda a, **options: a, X, scale=X) == ("a", "options['scale']")


def test_leaves_of_a_pytree_are_named_by_their_path():
    params = {"w": X, "layers": [X, Weights(X, X)]}
    assert names(lambda params, x: x, params, X) == (
        "params['layers'][0]",
        "params['layers'][1].slope",
        "params['layers'][1].offset",
        "params['w']",
        "x",
    )


@pytest.mark.parametrize("wrap", [lambda host: host, functools.partial, wrapped_in_a_function])
def test_objects_of_the_user_are_named_without_reading_their_attributes(wrap):
    function = wrap(Untouchable())
    tree = jax.tree.structure(((X,), {}))
    assert ArrayNames(function, tree).operands() == ("x",)


def test_results_are_named_by_their_path():
    result = {"mean": SCALAR, "parts": (SCALAR, SCALAR)}

    def host(x):
        return {"mean": x, "parts": (x, x)}

    fact = lowered(lambda x: jaxcb.pure_callback(host, result, x), X)
    assert fact.result_names == ("result['mean']", "result['parts'][0]", "result['parts'][1]")


def test_eager_calls_of_one_line_with_different_pytrees_have_their_own_names():
    @jaxcb.pure(result=SCALAR)
    def total(params):
        return sum(params.values())

    with jaxcb.record() as r:
        for key in ("w", "b", "w"):
            total({key: X})
    assert [fact.operand_names for fact in r.recording.lowered] == [
        ("params['w']",),
        ("params['b']",),
    ]


@pytest.mark.parametrize(("recorded", "times"), [(False, 0), (True, 1)])
def test_eager_calls_of_one_line_read_the_signature_once_and_only_if_recorded(
    monkeypatch, recorded, times
):
    reads = []
    read = _array_names.signature_of
    monkeypatch.setattr(_array_names, "signature_of", lambda *args: reads.append(1) or read(*args))
    with jaxcb.record() if recorded else contextlib.nullcontext():
        for _ in range(5):
            jaxcb.pure_callback(Model(), SCALAR, X)
    assert len(reads) == times
