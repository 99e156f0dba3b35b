"""Compilation is an option of pure, io and buffer that needs numba and refuses other options."""

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

FLAVORS = {"pure": jaxcb.pure, "io": jaxcb.io, "buffer": jaxcb.buffer}


def same(x):
    return x


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize("compiler", ["cython", "", True, "Numba"])
def test_unknown_compiler_is_refused(flavor, compiler):
    with pytest.raises(ValueError, match=r"unknown compiler .*\. Pass compile='numba', or None"):
        FLAVORS[flavor](same, result="x", compile=compiler)


@pytest.mark.parametrize("flavor", ["pure", "io"])
@pytest.mark.parametrize(
    "option",
    [
        {"arrays": "jax"},
        {"executor": "threads"},
        {"sharding": jax.sharding.SingleDeviceSharding(jax.devices()[0])},
    ],
    ids=lambda option: next(iter(option)),
)
def test_options_that_need_python_are_refused(flavor, option):
    (name,) = option
    refused = rf"^{name}=.* cannot be combined with compile='numba': .* Drop {name}=.* or compile="
    with pytest.raises(ValueError, match=refused):
        FLAVORS[flavor](same, result="x", compile="numba", **option)


def test_check_of_a_buffer_callback_needs_python():
    with pytest.raises(ValueError, match="check=True cannot be combined with compile='numba'"):
        jaxcb.buffer(same, result="x", compile="numba", check=True)


def test_decorator_takes_the_option():
    @jaxcb.pure(result="x", compile="numba")
    def double(x):
        return 2 * x

    assert double.__wrapped__(3) == 6
    assert float(jax.jit(double)(np.float32(3))) == 6


def test_inferred_results_are_those_of_the_function():
    callback = jaxcb.pure(lambda x: (x.sum(), x[:2]), result="infer", compile="numba")
    total, part = jax.jit(callback)(np.float32([1, 2, 3]))
    assert float(total) == 6
    np.testing.assert_array_equal(part, [1, 2])


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None
import jax, numpy as np, jupyter_jaxcb as jaxcb

for flavor in (jaxcb.pure, jaxcb.io, jaxcb.buffer):
    try:
        flavor(lambda x: x, result="x", compile="numba")
    except ImportError as error:
        assert "pip install 'jupyter_jaxcb[numba]'" in str(error), error
        assert str(error).startswith("compile='numba' needs numba: "), error
    else:
        raise AssertionError(flavor)

@jaxcb.buffer(result="x")
def add_one(out, x):
    np.add(x, 1, out=out)

double = jaxcb.pure(lambda x: 2 * x, result="x")
keep = jaxcb.io(lambda x: x, result="x")
with jaxcb.record() as r:
    result = jax.jit(jax.vmap(lambda x: keep(add_one(double(x)))))(np.float32([1, 2]))
assert result.tolist() == [3, 5]
assert len(r.recording) == 6
"""


def test_without_numba_only_compilation_is_missing(in_process):
    in_process(WITHOUT_NUMBA)


def test_numba_is_imported_with_the_first_compiled_callback(in_process):
    in_process("""
        import sys, jax, numpy as np, jupyter_jaxcb as jaxcb
        with jaxcb.record() as r:
            jax.jit(jaxcb.pure(lambda x: 2 * x, result="x"))(1.0)
        assert "numba" not in sys.modules
        callback = jaxcb.pure(lambda x: 2 * x, result="x", compile="numba")
        assert "numba" in sys.modules
        assert float(jax.jit(callback)(1.0)) == 2
    """)


@pytest.mark.parametrize("flavor", [jaxcb.pure, jaxcb.io])
def test_programs_for_a_gpu_are_refused_with_what_to_do(flavor):
    callback = flavor(lambda x: x, result=lambda x: x, compile="numba")
    with pytest.raises(NotImplementedError, match="on cuda: numba compiles for CPUs"):
        jax.jit(callback).trace(1.0).lower(lowering_platforms=("cuda",))
