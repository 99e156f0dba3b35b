"""``result="infer"`` runs a pure function once, on zeros; ``cast=True`` lets results lose bits."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb


def test_structure_shapes_and_dtypes_are_inferred_from_the_result():
    @jaxcb.pure(result="infer")
    def parts(m, scale=2.0):
        return {"values": np.linalg.eigvalsh(m), "sum": (m.sum() * scale, np.int8(3))}

    m = np.diag([1.0, 2.0]).astype(np.float32)
    for f in (parts, jax.jit(parts)):
        found = f(m)
        np.testing.assert_allclose(found["values"], [1, 2])
        assert found["sum"][0] == 6 and found["sum"][1].dtype == jnp.int8
    batched = jax.jit(jax.vmap(parts))(jnp.stack([m, 2 * m]))
    np.testing.assert_allclose(batched["values"], [[1, 2], [2, 4]])


def test_function_runs_once_for_each_shape_on_read_only_zeros():
    seen = []

    @jaxcb.pure(result="infer")
    def host(x, *, flag="plain"):
        seen.append((x.shape, x.dtype.name, x.flags.writeable, float(np.sum(x)), flag))
        return x

    f = jax.jit(host)
    x = np.ones(3, np.float32)
    f.lower(x)
    assert seen == [((3,), "float32", False, 0.0, "plain")]
    jax.jit(lambda x: host(x) + 1).lower(x)
    assert len(seen) == 1  # the result is already known
    f.lower(np.ones(2, np.float32)), f.lower(np.ones(3, np.int8)), host(x, flag="other")
    assert [call[:2] for call in seen[1:3]] == [((2,), "float32"), ((3,), "int8")]
    assert [call[3:] for call in seen[3:]] == [(0.0, "other"), (3.0, "other")]


def test_64_bit_results_are_inferred_as_32_bit_without_x64():
    host = jaxcb.pure(lambda x: np.float64(x) / 3, result="infer")
    assert host(1.0).dtype == jnp.float32


def test_inferred_result_follows_x64():
    host = jaxcb.pure(lambda x: np.float64(x) / 3, result="infer")
    for on in (False, True, False):
        with jax.enable_x64(on):
            assert host(np.float32(1)).dtype == (jnp.float64 if on else jnp.float32)


def test_result_of_a_new_body_is_inferred_again():
    names = {"np": np}
    exec("def host(x): return np.float32(1)", names)
    assert jaxcb.pure(names["host"], result="infer")(1.0).shape == ()
    exec("def host(x): return np.ones(3, np.float32)", names)
    assert jaxcb.pure(names["host"], result="infer")(1.0).shape == (3,)


def test_error_of_a_function_that_fails_on_zeros_says_what_to_declare():
    @jaxcb.pure(result="infer")
    def inverse(m):
        return np.linalg.inv(m)

    with pytest.raises(
        ValueError, match=r"result of inverse: run on zeros it raised LinAlgError"
    ) as e:
        jax.jit(inverse)(jnp.eye(2))
    assert "result=jax.ShapeDtypeStruct" in str(e.value)
    assert isinstance(e.value.__cause__, np.linalg.LinAlgError)


def test_result_of_an_io_callback_is_not_inferred():
    with pytest.raises(ValueError, match=r"with its side effects. Declare the result"):
        jaxcb.io(lambda x: x, result="infer")


def declared(dtype):
    return jax.ShapeDtypeStruct((), jnp.dtype(dtype))


LOSING = [
    (np.int64(2**40 + 7), "int32", 7),
    (np.int32(300), "int8", 44),
    (np.uint8(200), "int8", -56),
    (np.float64(1e300), "float32", np.inf),
    (np.float32(1e10), "float16", np.inf),
    (np.complex128(1e300), "complex64", complex(np.inf, 0)),
    (np.int64(2**53 + 1), "float32", np.float32(2**53)),
]


@pytest.mark.parametrize(("returned_value", "dtype", "cast"), LOSING, ids=lambda value: str(value))
@pytest.mark.parametrize("register", [jaxcb.pure, jaxcb.io], ids=["pure", "io"])
def test_cast_allows_loss_of_range_and_precision_within_a_kind(
    register, returned_value, dtype, cast
):
    host = register(lambda: returned_value, result=declared(dtype), cast=True)
    for f in (host, jax.jit(host)):
        assert f() == cast
        assert f().dtype == jnp.dtype(dtype)
    plain = register(lambda: returned_value, result=declared(dtype))
    with pytest.raises(Exception, match=r"does not fit the declared .*cast=True"):
        plain()


@pytest.mark.parametrize(
    ("returned_value", "dtype"),
    [(np.float32(1.5), "int32"), (np.complex64(1j), "float32"), (np.int32(1), "bool"),
     (ml_dtypes.bfloat16(2), "int8")],
    ids=str,
)  # fmt: skip
def test_cast_does_not_convert_between_kinds(returned_value, dtype):
    host = jaxcb.pure(lambda: returned_value, result=declared(dtype), cast=True)
    with pytest.raises(Exception, match=f"expected {dtype}"):
        host()


def test_cast_is_another_interface():
    names = {"np": np}
    exec("def host(): return np.int64(2**40 + 7)", names)
    strict = jaxcb.pure(names["host"], result=declared("int32"))
    loose = jaxcb.pure(names["host"], result=declared("int32"), cast=True)
    assert loose() == 7
    with pytest.raises(Exception, match="does not fit"):
        strict()


def test_result_whose_size_depends_on_the_data_is_refused_and_not_inferred_as_empty():
    where = jaxcb.pure(lambda x: {"at": np.flatnonzero(x > 0.5)}, result="infer")
    x = jnp.array([0.0, 1.0])
    for f in (where, jax.jit(where)):
        with pytest.raises(
            ValueError, match=r"zeros give \(0,\), arrays of 1 give \(2,\)\).*Declare one shape"
        ):
            f(x)


def test_results_that_are_empty_for_any_data_are_inferred():
    double = jaxcb.pure(
        lambda x: {"v": 2 * x, "none": np.zeros(0), "d": np.diff(x)}, result="infer"
    )
    for x in (jnp.zeros(0), jnp.ones(1), jnp.ones(3)):
        assert [double(x)[key].size for key in ("v", "none", "d")] == [
            x.size,
            0,
            max(x.size - 1, 0),
        ]
