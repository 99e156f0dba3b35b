"""A registered callback as the static parameter of a bind: equality, repr, signatures."""

import inspect

import jax
import numpy as np
import pytest
from jax.experimental import io_callback

import jupyter_jaxcb as jaxcb

SCALAR = jax.ShapeDtypeStruct((), np.float32)


def plus_one(x):
    return x + 1


def parameter(function):
    jax.clear_caches()  # a fresh trace, or both sides are the same object
    (equation,) = jax.make_jaxpr(function)(1.0).eqns
    return equation.params["callback"]


def test_parameters_of_the_same_function_are_equal_from_any_line():
    a = parameter(lambda x: jaxcb.pure_callback(plus_one, SCALAR, x))
    b = parameter(lambda x: jaxcb.pure_callback(plus_one, SCALAR, x))
    assert a is not b and a.bind.site != b.bind.site  # the premise of this test
    assert a == b and hash(a) == hash(b)


def test_unhashable_callable_works():
    class Host:
        __hash__ = None

        def __call__(self, x):
            return x + 1

    host = Host()
    f = jax.jit(lambda x: jaxcb.pure_callback(host, SCALAR, x))
    assert float(f(1.0)) == 2.0
    assert float(jaxcb.pure_callback(host, SCALAR, 1.0)) == 2.0


OURS = ("arrays", "executor", "chunksize", "timeout", "queued", "on_full", "rematerialize")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (jaxcb.pure_callback, jax.pure_callback),
        (jaxcb.io_callback, io_callback),
        (jaxcb.debug_callback, jax.debug.callback),
        (jaxcb.debug_print, jax.debug.print),
    ],
    ids=["pure", "io", "debug", "print"],
)
def test_drop_in_functions_take_all_parameters_of_jax(ours, theirs):
    def parameters(function):
        return {
            name: parameter.kind
            for name, parameter in inspect.signature(function).parameters.items()
            if not name.startswith("_") and name not in OURS
        }

    own = parameters(ours)
    if theirs is not jax.pure_callback:
        assert "vmap_method" in own.keys() - parameters(theirs).keys()
        del own["vmap_method"]
    assert own == parameters(theirs)


def test_binds_of_one_function_are_compared_although_only_some_have_a_result():
    """JAX's caches compare some keys whose hashes differ."""

    def host(x):
        return None

    flavors = [
        jaxcb.debug(host),
        jaxcb.tap(host),
        jaxcb.io(host, result=None),
        lambda x: jaxcb.io_callback(host, None, x),
        lambda x: jaxcb.pure_callback(host, None, x),
    ]
    bound = [jax.make_jaxpr(f)(1.0).eqns[0].params["callback"] for f in flavors]
    equal = [(a, b) for a, one in enumerate(bound) for b, other in enumerate(bound) if one == other]
    assert equal == [(place, place) for place in range(len(bound))]
