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
    ("option", "refused"),
    [
        ({"arrays": "jax"}, r"^arrays=.* compile='numba': .* Drop arrays='jax' or compile="),
        ({"executor": "processes"}, r"^compile='numba' .* executor='processes': .* Drop compile="),
    ],
    ids=["arrays", "executor"],
)
def test_options_that_need_python_are_refused(flavor, option, refused):
    with pytest.raises(ValueError, match=refused):
        FLAVORS[flavor](same, result="x", compile="numba", **option)


@pytest.mark.parametrize("jitted", [False, True])
def test_check_of_a_compiled_buffer_callback_finds_unwritten_output(jitted):
    def partly(out, x):
        out[1:] = x[1:]

    f = jaxcb.buffer(partly, result="x", compile="numba", check=True)
    with pytest.raises(jax.errors.JaxRuntimeError) as raised:
        jax.block_until_ready((jax.jit(f) if jitted else f)(np.float32([1, 2, 3])))
    assert "partly did not write 1 of the 3 elements of out" in str(jaxcb.host_error(raised.value))


@pytest.mark.parametrize("flavor", ["pure", "io"])
def test_device_of_sharding_makes_the_calls(flavor):
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    f = FLAVORS[flavor](lambda x: 2 * x, result="x", compile="numba", sharding=sharding)
    with jaxcb.record() as r:
        np.testing.assert_array_equal(jax.jit(jax.vmap(f))(np.float32([1, 2, 3])), [2, 4, 6])
    assert len(r.recording) == 3


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
        assert str(error).startswith("compile='numba' needs numba, but the import failed ("), error
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


@pytest.mark.long
def test_without_numba_only_compilation_is_missing(in_process):
    in_process(WITHOUT_NUMBA)


@pytest.mark.long
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


@pytest.mark.kept
@pytest.mark.parametrize(
    ("platforms", "named"),
    [
        (("cpu", "cuda"), "on cuda: numba"),
        (("tpu", "cpu"), "on tpu: numba"),
        (("cpu", "cuda", "rocm"), "on cuda and rocm: numba"),
    ],
)
def test_refusal_of_several_platforms_names_those_without_numba(platforms, named):
    callback = jaxcb.pure(lambda x: x, result="x", compile="numba")
    with pytest.raises(NotImplementedError) as raised:
        jax.jit(callback).trace(1.0).lower(lowering_platforms=platforms)
    assert named in str(raised.value) and "on cpu" not in str(raised.value)
