"""Callables and exceptions whose own attributes raise, and exceptions raised many times."""

import functools

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


class NoTruth(Exception):
    def __bool__(self):
        raise TypeError("no truth value")


class NoClass(Exception):
    @property
    def __class__(self):
        raise TypeError("no class")


@pytest.mark.parametrize("kind", [NoTruth, NoClass])
@pytest.mark.parametrize(
    "register",
    [
        jaxcb.debug,
        functools.partial(jaxcb.pure, result="x"),
        functools.partial(jaxcb.pure, result="x", executor="threads:2"),
    ],
)
def test_exception_that_cannot_be_asked_about_itself_reaches_the_caller(register, kind):
    raised = []

    def host(x):
        raised.append(kind("odd"))
        raise raised[-1]

    call = register(host)
    with pytest.raises(BaseException) as caught:
        call(np.float32(1))
    found = jaxcb.host_error(caught.value)  # None for an eager debug callback's own exception
    assert (caught.value if found is None else found) is raised[-1]


class Silent(Exception):
    def __str__(self):
        raise SystemExit(3)


class Array:
    def __array__(self, dtype=None, copy=None):
        raise Silent


@jax.tree_util.register_pytree_node_class
class Node:
    def tree_flatten(self):
        raise Silent

    @classmethod
    def tree_unflatten(cls, data, leaves):
        raise Silent


def silent(*arguments):
    raise Silent


@pytest.mark.parametrize(
    ("returned_value", "declared"),
    [(Array(), SCALAR), (Node(), {"y": SCALAR})],
    ids=["array", "node"],
)
def test_result_whose_conversion_fails_without_a_message_is_a_host_error(returned_value, declared):
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"Silent: <its message raised SystemExit"):
        jaxcb.pure_callback(lambda x: returned_value, declared, np.float32(1))


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (lambda: jaxcb.pure(np.sin, result=silent), ValueError),
        (lambda: jaxcb.pure(silent, result="infer"), ValueError),
    ],
    ids=["result", "infer"],
)
def test_result_function_that_fails_without_a_message_is_reported(made, kind):
    with pytest.raises(kind, match=r"Silent: <its message raised SystemExit"):
        made()(np.float32(1))


def test_check_reports_a_function_that_fails_without_a_message():
    findings = jaxcb.check(jaxcb.pure(silent, result=SCALAR), np.float32(1))
    assert "Silent: <its message raised SystemExit>" in str(findings)


def test_error_at_every_element_of_finite_differences_has_one_note():
    again = ValueError("the same each time")

    def host(x):
        if (np.asarray(x) != 1).any():
            raise again
        return x.sum()

    loss = jaxcb.pure(host, result=SCALAR, derivative="finite")
    for _ in range(20):
        with pytest.raises(jax.errors.JaxRuntimeError):
            jax.block_until_ready(jax.grad(lambda x: loss(x))(np.ones(3, np.float32)))
    assert sum("was moved from" in note for note in again.__notes__) == 1


def test_exception_that_is_raised_repeatedly_has_one_note_per_call_site():
    again = ValueError("the same each time")
    again.add_note("of the user")

    def host(x):
        raise again

    first = jax.jit(lambda x: jaxcb.pure_callback(host, SCALAR, x))
    second = jax.jit(lambda x: jaxcb.pure_callback(host, SCALAR, x + 1))
    for _ in range(50):
        for f in (first, second):
            with pytest.raises(jax.errors.JaxRuntimeError):
                f(1.0).block_until_ready()
    user, *ours = again.__notes__
    assert user == "of the user"
    assert len(ours) == 2
    assert all("bound at" in note and "in call" in note for note in ours)


class NoClassOfFunction:
    @property
    def __class__(self):
        raise TypeError("no class")

    def __call__(self, x):
        return x


@pytest.mark.parametrize("run", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_callable_whose_class_cannot_be_asked_for_is_registered_and_called(run):
    of_decorator = jaxcb.pure(NoClassOfFunction(), result="x")
    assert run(lambda x: of_decorator(x))(np.float32(2)) == 2
    assert run(lambda x: jaxcb.pure_callback(NoClassOfFunction(), SCALAR, x))(np.float32(3)) == 3
