"""What stands in a jaxpr for a callback is copied, pickled and formatted as the callback."""

import copy
import pickle

import jax
import pytest
from jax.experimental.buffer_callback import buffer_callback

import jupyter_jaxcb as jaxcb
from tests.diagnostics.observe._own import STRUCT, double, double_into, one

BINDS = {
    "pure": lambda x: jax.pure_callback(double, STRUCT, x),
    "print": lambda x: jax.debug.print("x is {}", x),
    "buffer": lambda x: buffer_callback(double_into, STRUCT)(x),
}


def held(bind):
    """What the bind holds, as it is and observed."""
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
    [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))],
    ids=["copy", "deepcopy", "pickle"],
)
@pytest.mark.parametrize("bind", BINDS.values(), ids=BINDS)
def test_copy_is_one_of_the_callback_itself(bind, copied):
    plain, observed = held(bind)
    assert type(observed) is not type(plain)  # the test's own premise
    assert type(copied(observed)) is type(copied(plain))
    assert copied(observed) == copied(plain)


def test_callback_of_a_compiled_program_is_copied_as_the_callback_itself():
    from jupyter_jaxcb.recording import LoweredSite, Site
    from jupyter_jaxcb.stack.dispatch._observed_call import RecordedCall

    site = Site("jax pure", "double", "f.py", 1, 0, False)
    noted = RecordedCall(double, LoweredSite(site, None, -1, (), ()))
    assert copy.deepcopy(noted) is double
    assert not hasattr(noted, "__deepcopy__")


class Loud(str):
    def format(self, *args, **kwargs):
        return str.format(self, *args, **kwargs).upper()


@pytest.mark.parametrize(
    "around",
    [lambda f: f, jax.jit, jax.vmap, lambda f: jax.jit(jax.vmap(f))],
    ids=["eager", "jit", "vmap", "vmap in jit"],
)
def test_format_with_its_own_handler_keeps_it(around, capsys):
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


def test_jaxpr_with_such_a_format_prints_as_ever():
    class Named(str):
        def __str__(self):
            return "named"

    def printed():
        return str(jax.make_jaxpr(lambda x: jax.debug.print(Named("x is {}"), x))(one()))

    plain = printed()
    assert "named" in plain
    with jaxcb.observe_jax():
        assert printed() == plain
