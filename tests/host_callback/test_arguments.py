"""Arguments of id_tap are checked when it is called, before anything runs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb
from jupyter_jaxcb import host_callback as hcb

FLAVORS = list(hcb.CallbackFlavor)


@pytest.mark.parametrize("wrong", [3, "f", None])
def test_non_function_is_refused(wrong):
    with pytest.raises(TypeError, match="id_tap needs a function as its first argument"):
        hcb.id_tap(wrong, 1.0)


def test_function_without_hash_is_refused():
    class Unhashable(list):
        def __call__(self, arg, transforms): ...

    with pytest.raises(TypeError, match="not hashable"):
        hcb.id_tap(Unhashable(), 1.0)


@pytest.mark.parametrize("leaf", ["text", object(), b"bytes", {1, 2}])
def test_leaf_that_is_not_an_array_is_refused(seen, leaf):
    with pytest.raises(TypeError, match=r"not a valid JAX type.*functools\.partial"):
        hcb.id_tap(seen, {"x": [1.0, leaf]})
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.jit(lambda x: hcb.id_tap(seen, (x, leaf)))(1.0)
    assert seen.calls == []


def test_message_names_the_path_of_the_leaf(seen):
    with pytest.raises(TypeError, match=r"'text' at \['x'\]\[1\]"):
        hcb.id_tap(seen, {"x": [1.0, "text"]})


def test_result_is_checked_like_the_argument(seen):
    with pytest.raises(TypeError, match="as its result"):
        hcb.id_tap(seen, 1.0, result="text")
    assert seen.calls == []


@pytest.mark.parametrize("result", [3, 2.5, np.arange(3), [1, (2,)], ()])
def test_result_is_returned_as_the_same_object(seen, result):
    assert hcb.id_tap(seen, 1.0, result=result) is result
    assert hcb.id_print(1.0, result=result, output_stream=open_nothing()) is result
    assert len(seen.calls) == 1


def open_nothing():
    class Nothing:
        def write(self, text): ...

    return Nothing()


def test_result_is_returned_as_the_same_object_under_jit(seen):
    results = []

    def f(x):
        given = {"y": x + 1}
        results.append(hcb.id_tap(seen, x, result=given) is given)
        return given["y"]

    assert seen.of(jax.jit(f), 1.0) == 2.0
    assert results == [True]
    assert seen.values == [1.0]


def test_other_keywords_are_refused_with_advice(seen):
    with pytest.raises(TypeError, match=r"id_tap got what='x'.*functools\.partial"):
        hcb.id_tap(seen, 1.0, what="x")
    assert seen.calls == []


def test_keywords_bound_by_partial_reach_the_tap_function():
    got = []

    def tap(arg, transforms, *, what):
        got.append((float(arg), what))

    hcb.id_tap(functools.partial(tap, what="x"), 1.0)
    assert got == [(1.0, "x")]


@pytest.mark.parametrize("keyword", ["tap_with_transform", "tap_with_transforms"])
def test_keywords_of_old_tutorials_are_accepted_without_effect(seen, keyword):
    hcb.id_tap(seen, 1.0, **{keyword: True})
    assert seen.transforms == [()]


@pytest.mark.parametrize("keyword", ["tap_with_transform", "tap_with_transforms"])
def test_transforms_cannot_be_turned_off(seen, keyword):
    with pytest.raises(TypeError, match="second argument is always"):
        hcb.id_tap(seen, 1.0, **{keyword: False})


def test_options_are_keyword_only(seen):
    with pytest.raises(TypeError):
        hcb.id_tap(seen, 1.0, 2.0)
    with pytest.raises(TypeError):
        hcb.call(np.sin, 1.0, 1.0)
    with pytest.raises(TypeError):
        hcb.id_print(1.0, 2.0)


@pytest.mark.parametrize("flavor", FLAVORS, ids=lambda flavor: flavor.name)
def test_every_flavor_is_accepted_without_effect(seen, flavor):
    f = jax.jit(lambda x: (hcb.id_tap(seen, x, callback_flavor=flavor), x + 1)[1])
    assert seen.of(f, 1.0) == 2.0
    assert seen.values == [1.0]
    assert hcb.call(np.negative, 1.0, result_shape=1.0, callback_flavor=flavor) == -1.0


def test_flavors_have_the_numbers_of_jax():
    assert {f.name: f.value for f in FLAVORS} == {"IO_CALLBACK": 1, "PURE": 2, "DEBUG": 3}


@pytest.mark.parametrize("function", [hcb.id_tap, hcb.call])
def test_wrong_flavor_is_refused(function):
    with pytest.raises(TypeError, match="callback_flavor must be a CallbackFlavor, not 'io'"):
        function(np.sin, 1.0, callback_flavor="io")


@pytest.mark.parametrize("index", [-1, 10_000])
def test_device_index_out_of_range_is_refused(seen, index):
    for use in (
        lambda: hcb.id_tap(seen, 1.0, device_index=index),
        lambda: hcb.id_print(1.0, device_index=index),
        lambda: hcb.call(np.sin, 1.0, result_shape=1.0, device_index=index),
    ):
        with pytest.raises(ValueError, match=f"device_index={index} is out of range"):
            use()


def test_device_index_must_be_a_number(seen):
    with pytest.raises(TypeError):
        hcb.id_tap(seen, 1.0, device_index="cpu")


class Equal:
    """A tap function that equals every other `Equal`; comparing it with anything else fails."""

    def __call__(self, arg, transforms): ...

    def tap(self, arg, transforms): ...

    def __eq__(self, other):
        assert isinstance(other, Equal)
        return True

    def __hash__(self):
        return 7


MODEL = Equal()


@pytest.mark.parametrize("make", [Equal, lambda: MODEL.tap], ids=["equal", "bound method"])
def test_equal_functions_give_the_same_program(make):
    """Functions are compared by equality, because each access to a bound method is a new object."""
    first, second = (
        jax.make_jaxpr(lambda x: hcb.id_tap(make(), x))(1.0).eqns[0].params for _ in range(2)
    )
    assert first["callback"] is not second["callback"]
    assert first == second
    assert hash(first["callback"]) == hash(second["callback"])


def test_different_functions_give_different_programs():
    first, second = (
        jax.make_jaxpr(lambda x, t=t: hcb.id_tap(t, x))(1.0).eqns[0].params
        for t in (lambda a, t: None, lambda a, t: None)
    )
    assert first != second


def test_program_is_compiled_once_for_equal_functions(compiles):
    f = jax.jit(lambda x, tap: hcb.id_tap(tap, x) + 1, static_argnums=1)
    jax.block_until_ready(f(jnp.float32(1), Equal()))
    with compiles() as counted:
        jax.block_until_ready(f(jnp.float32(2), Equal()))
    assert counted.count == 0


def test_eager_lambdas_compile_nothing(compiles):
    jax.block_until_ready(jnp.float32(1))
    with compiles() as counted:
        for number in range(3):
            hcb.id_tap(lambda a, t: None, np.float32(number))
    assert counted.count == 0


def test_module_has_the_names_of_the_removed_module():
    names = "id_tap id_print call barrier_wait stop_outfeed_receiver CallbackException"
    for name in f"{names} TapFunctionException CallbackFlavor".split():
        assert hasattr(hcb, name), name
    assert hcb.TapFunctionException is hcb.CallbackException
    assert jupyter_jaxcb.host_callback is hcb
