"""Callables and exceptions that fail when they are asked what they are; one raised many times."""

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

SCALAR = jax.ShapeDtypeStruct((), np.float32)


@pytest.mark.parametrize("kind", [ValueError, SystemExit])
def test_callable_whose_name_raises_is_called(kind):
    class Host:
        @property
        def __name__(self):
            raise kind("no name")

        def __call__(self, x):
            return x + 1

    host = Host()
    assert float(jax.jit(lambda x: jaxcb.pure_callback(host, SCALAR, x))(1.0)) == 2.0
    with jaxcb.record() as recorded:
        assert float(jaxcb.pure_callback(host, SCALAR, np.float32(1))) == 2.0
    assert recorded.recording.lowered[0].site.function == "Host"
    for callback in (jaxcb.pure(host, result=SCALAR), jaxcb.io(host, result=SCALAR)):
        assert float(jax.jit(lambda x, f=callback: f(x))(1.0)) == 2.0
    look = jaxcb.debug(host)
    jax.jit(lambda x: look(x))(1.0)
    jax.effects_barrier()


def test_exception_whose_text_raises_a_system_exit_is_an_error_of_the_host_function():
    class Silent(Exception):
        def __str__(self):
            raise SystemExit(3)

    def host(x):
        raise Silent

    f = jax.jit(lambda x: jaxcb.pure_callback(host, SCALAR, x))
    with jaxcb.record() as recorded, pytest.raises(jax.errors.JaxRuntimeError) as caught:
        f(1.0).block_until_ready()
    assert isinstance(jaxcb.host_error(caught.value), Silent)
    (call,) = recorded.recording
    assert call.error == "Silent: <its message raised SystemExit>"


def test_exception_that_is_raised_again_and_again_has_one_note_a_call_site():
    again = ValueError("the same each time")
    again.add_note("of the user")

    def host(x):
        raise again

    one = jax.jit(lambda x: jaxcb.pure_callback(host, SCALAR, x))
    two = jax.jit(lambda x: jaxcb.pure_callback(host, SCALAR, x + 1))
    for _ in range(50):
        for f in (one, two):
            with pytest.raises(jax.errors.JaxRuntimeError):
                f(1.0).block_until_ready()
    user, *ours = again.__notes__
    assert user == "of the user"
    assert len(ours) == 2
    assert all("bound at" in note and "in call" in note for note in ours)
