"""Functions of C compute what SciPy, NumPy and Python compute, for each element of arrays."""

import ctypes
import ctypes.util
import gc
import os
import weakref

import cffi
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy
from scipy import special
from scipy.special import cython_special

import jupyter_jaxcb as jaxcb

Z = np.linspace(0.1, 9.0, 12, dtype=np.float32).reshape(3, 4)
LIBM = ctypes.CDLL(ctypes.util.find_library("m"))
FFI = cffi.FFI()
FFI.cdef("double cbrt(double); int abs(int);")
LIBC = FFI.dlopen(None)


ctypes.pythonapi.PyLong_FromLong.argtypes = [ctypes.c_long]


def compiled(function):
    return jaxcb.pure(function, compile="numba")


def of_ctypes(name, kind):
    function = getattr(LIBM, name)
    function.argtypes, function.restype = [kind], kind
    return function


@pytest.mark.parametrize(
    ("function", "name", "arguments"),
    [
        (cython_special.jv, "jv", (1.5, Z)),
        (cython_special.jv, "jv", (1.5, Z + 1j)),
        (cython_special.erf, "erf", (Z,)),
        (cython_special.yn, "yn", (2, Z)),
        (cython_special.spherical_jn, "spherical_jn", (2, Z)),  # has an optional argument
        ("scipy.special.cython_special.airy", "airy", (Z,)),  # writes four results
        ("scipy.special.cython_special.airy", "airy", (Z + 1j,)),
        ("scipy.special.cython_special.sici", "sici", (Z,)),
    ],
    ids=["jv", "jv complex", "erf", "yn", "spherical_jn", "airy", "airy complex", "sici"],
)
@pytest.mark.parametrize("transformed", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_functions_of_cython_special_compute_what_scipy_computes(
    function, name, arguments, transformed
):
    found = jax.tree.leaves(transformed(compiled(function))(*arguments))
    expected = getattr(special, name)(*arguments)
    expected = expected if isinstance(expected, tuple) else (expected,)
    assert len(found) == len(expected)
    for own, other in zip(found, expected, strict=True):
        assert own.dtype == np.result_type(np.complex64 if np.iscomplexobj(other) else np.float32)
        np.testing.assert_allclose(own, other, rtol=2e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("function", "reference", "numbers"),
    [
        (of_ctypes("cbrt", ctypes.c_double), np.cbrt, Z),
        (of_ctypes("cbrtf", ctypes.c_float), np.cbrt, Z),
        (FFI.addressof(LIBC, "cbrt"), np.cbrt, Z),
        (LIBC.abs, np.abs, np.arange(-3, 4)),
        (scipy.LowLevelCallable.from_cython(cython_special, "j0"), special.j0, Z),
    ],
    ids=["ctypes double", "ctypes float", "cffi", "cffi int", "LowLevelCallable"],
)
def test_function_pointers_are_called_for_each_element(function, reference, numbers):
    found = jax.jit(compiled(function))(numbers)
    np.testing.assert_allclose(found, reference(numbers), rtol=2e-6)
    assert found.dtype == (np.int32 if numbers.dtype.kind == "i" else np.float32)


@pytest.mark.parametrize("transformed", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_function_without_arguments_is_called(transformed):
    getpid = ctypes.CDLL(None).getpid
    getpid.argtypes, getpid.restype = [], ctypes.c_int
    f = compiled(getpid)
    assert transformed(lambda: f())() == os.getpid()


def test_user_data_of_a_low_level_callable_reaches_its_function():
    kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_void_p)

    @kind
    def scaled(x, data):
        return x * ctypes.cast(data, ctypes.POINTER(ctypes.c_double))[0]

    factor = ctypes.c_double(2.5)
    data = ctypes.cast(ctypes.pointer(factor), ctypes.c_void_p)
    double = compiled(scipy.LowLevelCallable(scaled, data))
    np.testing.assert_allclose(jax.jit(double)(Z), 2.5 * Z)


def test_arguments_are_broadcast_and_each_element_is_one_call():
    jv = compiled(cython_special.jv)
    orders = np.arange(3, dtype=np.float32)[:, None]
    with jaxcb.record() as r:
        found = jax.jit(jv)(orders, Z)
    np.testing.assert_allclose(found, special.jv(orders, Z), rtol=2e-6)
    assert len(r.recording) == Z.size
    assert {call.crossing for call in r.recording} == {0}


def test_vmap_and_derivative_rules_take_functions_of_c():
    jv = compiled(cython_special.jv)

    @jv.defjvp
    def rule(primals, tangents):
        (order, x), (_, dx) = primals, tangents
        return jv(order, x), (jv(order - 1, x) - jv(order + 1, x)) / 2 * dx

    mapped = jax.jit(jax.vmap(jv, in_axes=(None, 1)))(1.0, Z)
    np.testing.assert_allclose(mapped, special.jv(1, Z).T, rtol=2e-6)
    slope = jax.grad(lambda x: jv(1.0, x).sum())(Z)
    np.testing.assert_allclose(slope, special.jvp(1, Z), rtol=1e-5, atol=1e-6)


def test_precision_is_that_of_the_arguments():
    with jax.enable_x64(True):
        erf = compiled(cython_special.erf)
        assert erf(jnp.float64(0.3)) == special.erf(0.3)
        assert erf(jnp.float32(0.3)).dtype == np.float32
        assert erf(jnp.int32(1)).dtype == np.float64


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (ctypes.CDLL(None).getpid, TypeError, "argtypes"),
        ("scipy.special.cython_special.nothing", TypeError, "no C function"),
        (ctypes.pythonapi.PyLong_FromLong, TypeError, "needs the GIL.*ctypes.CDLL"),
        (
            scipy.LowLevelCallable(
                ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, ctypes.POINTER(ctypes.c_double))(
                    lambda n, x: 0.0
                )
            ),
            TypeError,
            r"takes .double \*., which is not a number",
        ),
    ],
    ids=["no argtypes", "unknown name", "Python", "pointer"],
)
def test_other_functions_are_refused_with_what_to_do(function, error, words):
    with pytest.raises(error, match=words):
        compiled(function)


def test_result_and_vmap_method_of_a_function_of_c_are_not_declared():
    for options in ({"result": "x0"}, {"vmap_method": "expand_dims"}):
        with pytest.raises(ValueError, match="called for each element"):
            jaxcb.pure(cython_special.jv, compile="numba", **options)


def test_numbers_that_a_parameter_cannot_hold_are_refused():
    absolute = compiled(LIBC.abs)  # cffi does not tell its name
    with (
        jax.enable_x64(True),
        pytest.raises(ValueError, match=r"c_function does not take \(int64\)"),
    ):
        absolute(jnp.int64(2**32 + 5))


def test_python_numbers_have_the_precision_of_the_other_arguments():
    with jax.enable_x64(True):
        found = compiled(cython_special.jv)(1.5, Z)
    assert found.dtype == special.jv(1.5, Z).dtype == np.float32


def test_wrong_number_of_arguments_is_an_error_with_the_right_one():
    with pytest.raises(TypeError, match="jv takes 2 positional arguments, but got 1"):
        compiled(cython_special.jv)(Z)
    with pytest.raises(TypeError, match="but got 1 and z"):
        compiled(cython_special.jv)(1.0, z=Z)


def test_arguments_that_no_signature_takes_are_refused_by_name():
    with pytest.raises(ValueError, match=r"yn does not take \(int32, complex64\)"):
        compiled(cython_special.yn)(2, Z + 1j)


def test_c_functions_die_with_their_callbacks():
    alive = []

    def register(number):
        function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda x: x + number)
        callback = jaxcb.pure(function, compile="numba")
        alive.extend([weakref.ref(function), weakref.ref(callback.host.current)])
        for call in (callback, jax.jit(callback)):
            assert float(call(1.0)) == 1 + number

    for number in range(3):
        register(number)
    jax.clear_caches()
    for _ in range(2):  # programs first
        gc.collect()
    assert [ref() for ref in alive] == [None] * 6
