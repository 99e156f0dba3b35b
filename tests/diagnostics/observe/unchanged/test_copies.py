"""The object that replaces a callback in a jaxpr is copied, pickled and printed like it."""

import copy
import pickle

import jax
import pytest
from jax.experimental.buffer_callback import buffer_callback

import jupyter_jaxcb as jaxcb
from tests.diagnostics.observe._jax_callbacks import STRUCT, double, double_into, one
from tests.interface import Site, recorded_call

BINDS = {
    "pure": lambda x: jax.pure_callback(double, STRUCT, x),
    "print": lambda x: jax.debug.print("x is {}", x),
    "buffer": lambda x: buffer_callback(double_into, STRUCT)(x),
}


def callback_parameters(bind):
    """Return the callback parameter of the bind, without observing and while observing."""
    found = []
    for _ in range(2):
        (equation,) = jax.make_jaxpr(lambda x: bind(x))(one()).eqns
        found.append(equation.params.get("callback", equation.params.get("fmt")))
        if len(found) == 1:
            observing = jaxcb.observe_jax()
            observing.__enter__()
    observing.__exit__(None, None, None)
    return found


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda callback: pickle.loads(pickle.dumps(callback))],
    ids=["copy", "deepcopy", "pickle"],
)
@pytest.mark.parametrize("bind", BINDS.values(), ids=BINDS)
def test_copy_is_a_copy_of_the_callback_itself(bind, copied):
    plain, observed = callback_parameters(bind)
    assert type(observed) is not type(plain)  # or else there would be nothing to test
    assert type(copied(observed)) is type(copied(plain))
    assert copied(observed) == copied(plain)


def test_copy_of_a_recorded_host_function_is_the_host_function_itself():
    site = Site("jax pure", "double", "f.py", 1, 0, False)
    recorded = recorded_call(double, site)
    assert copy.deepcopy(recorded) is double
    assert not hasattr(recorded, "__deepcopy__")


class Loud(str):
    def format(self, *args, **kwargs):
        return str.format(self, *args, **kwargs).upper()


@pytest.mark.parametrize(
    "around",
    [lambda f: f, jax.jit, jax.vmap, lambda f: jax.jit(jax.vmap(f))],
    ids=["eager", "jit", "vmap", "vmap in jit"],
)
def test_format_string_with_its_own_format_method_keeps_it(around, capsys):
    def f(x):
        jax.debug.print(Loud("x is {}"), x)

    x = jax.numpy.ones(2)
    around(f)(x)
    jax.effects_barrier()
    plain = capsys.readouterr().out
    assert plain.startswith("X IS")
    with jaxcb.observe_jax():
        jitted = around(lambda x: f(x))
        jitted(x)
    assert capsys.readouterr().out == plain
    jitted(x)
    jax.effects_barrier()
    assert capsys.readouterr().out == plain


def test_jaxpr_with_a_subclass_of_str_as_format_prints_the_same():
    class Named(str):
        def __str__(self):
            return "named"

    def printed():
        return str(jax.make_jaxpr(lambda x: jax.debug.print(Named("x is {}"), x))(one()))

    plain = printed()
    assert "named" in plain
    with jaxcb.observe_jax():
        assert printed() == plain
