"""The user's exception can be reached, points to its line, and is not confused with others."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests._threads import in_threads
from tests.interface import ResultError, kept_errors

SCALAR = jax.ShapeDtypeStruct((), np.float32)


class NoLuck(Exception):
    pass


def boom(x):
    if x > 2:
        raise NoLuck(f"at {float(x)}")
    return x


def failing(run):
    with pytest.raises(Exception) as caught:
        jax.block_until_ready(run())
        jax.effects_barrier()
    return caught.value


CALLS = {
    "pure": lambda x: jaxcb.pure_callback(boom, SCALAR, x, vmap_method="sequential"),
    "io": lambda x: jaxcb.io_callback(boom, SCALAR, x),
    "debug": lambda x: jaxcb.debug_callback(boom, x),
}


def test_note_names_flavor_line_element_and_shapes():
    f = jax.jit(jax.vmap(CALLS["pure"]))
    original = jaxcb.host_error(failing(lambda: f(jnp.arange(6.0))))
    (note,) = original.__notes__
    assert "pure callback boom" in note and "test_user_exception.py:" in note
    assert "in batch element 3" in note and "float32[]" in note


def test_elements_after_the_failing_one_are_not_called():
    seen = []
    f = jax.jit(
        jax.vmap(
            lambda x: jaxcb.pure_callback(
                lambda x: seen.append(float(x)) or boom(x), SCALAR, x, vmap_method="sequential"
            )
        )
    )
    with jaxcb.record() as recorded:
        failing(lambda: f(jnp.arange(6.0)))
    assert seen == [0, 1, 2, 3]
    assert [call.error for call in recorded.recording] == [None, None, None, "NoLuck: at 3.0"]


@pytest.mark.parametrize("bad", [0, 3, 5])
def test_element_with_a_wrong_result_is_named(bad):
    def host(x):
        return np.zeros(2, np.float32) if x == bad else x

    f = jax.jit(jax.vmap(lambda x: jaxcb.pure_callback(host, SCALAR, x, vmap_method="sequential")))
    with jaxcb.record() as recorded:
        original = jaxcb.host_error(failing(lambda: f(jnp.arange(6.0))))
    assert isinstance(original, ResultError)
    assert f"in batch element {bad}" in original.__notes__[0]
    failed = [call.element for call in recorded.recording if call.error]
    assert failed == [bad]


def test_errors_of_several_threads_are_distinguished():
    def host(x):
        raise NoLuck(f"number {int(x)}")

    f = jax.jit(lambda x: jaxcb.pure_callback(host, SCALAR, x))
    found = {}

    def work(number):
        found[number] = {
            str(jaxcb.host_error(failing(lambda: f(float(number))))) for _ in range(20)
        }

    in_threads(work, range(4))
    assert found == {n: {f"number {n}"} for n in range(4)}


def test_failures_of_another_thread_leave_this_threads_exception_in_place():
    f = jax.jit(lambda x: CALLS["pure"](x))  # not compiled by another test
    f(1.0)  # later calls take JAX's fast path, which attaches no __cause__ in most versions
    error = failing(lambda: f(3.0))

    def fail():
        for n in range(100):
            failing(lambda n=n: f(10.0 + n))

    other = threading.Thread(target=fail)
    other.start()
    other.join()
    assert str(jaxcb.host_error(error)) == "at 3.0"


def test_other_exceptions_have_no_host_error():
    assert jaxcb.host_error(ValueError("mine")) is None
    assert jaxcb.host_error(None) is None


def test_record_block_that_fails_keeps_what_was_recorded():
    with pytest.raises(NoLuck), jaxcb.record() as recorded:
        CALLS["pure"](1.0)
        CALLS["debug"](3.0)
    assert [call.error for call in recorded.recording] == [None, "NoLuck: at 3.0"]


def test_number_of_stored_exceptions_is_bounded():
    """Each stored exception keeps the arrays in its frames alive."""

    def fail(n):
        for _ in range(40):
            with pytest.raises(jax.errors.JaxRuntimeError):
                CALLS["pure"](float(n))

    in_threads(fail, range(3, 33))
    fail(100)
    kept = kept_errors()
    assert len(kept) <= 256
    assert list(kept.values()).count(threading.get_ident()) == 16


def test_number_of_a_failing_call_counts_the_calls_made():
    made = []

    def host(x):
        made.append(float(x))
        if x > 2:
            raise ValueError("bad")
        return x

    f = jaxcb.pure(host, result=lambda x: x)
    for total in (3, 6, 9):
        where = f"in call {total} since registration, in batch element 2"
        with pytest.raises(Exception, match=where):
            jax.block_until_ready(jax.vmap(f)(np.arange(1.0, 50.0)))
        assert len(made) == total
    with pytest.raises(Exception, match="in call 10 since registration,"):
        f(9.0)


def test_host_error_follows_causes_unless_it_is_told_not_to():
    error = failing(lambda: CALLS["pure"](3.0))
    try:
        raise RuntimeError("of the user") from error
    except RuntimeError as later:
        assert str(jaxcb.host_error(later)) == "at 3.0"
        assert jaxcb.host_error(later, chained=False) is None
