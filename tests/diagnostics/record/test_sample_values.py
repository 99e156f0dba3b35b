"""Sample values: short copies of the arguments and results of the first host calls of a site."""

import gc
import weakref

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests._threads import in_threads
from tests.interface import Recording, to_html, to_mimebundle, to_text

double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)


pytestmark = pytest.mark.usefixtures("nothing_compiled_before")


def pairs(recording):
    return [(sample.operands, sample.results) for sample in recording.sample_values]


def call(host, shape, dtype, *args, **options):
    return jaxcb.pure_callback(host, jax.ShapeDtypeStruct(shape, dtype), *args, **options)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_values_of_the_first_three_calls_are_kept_in_every_block(transform):
    f = transform(lambda x: double(x))
    for start in (0, 100):
        with jaxcb.record() as recorded:
            for number in range(5):
                jax.block_until_ready(f(np.float32(start + number)))
        expected = [((str(start + n),), (str(2 * (start + n)),)) for n in range(3)]
        assert pairs(recorded.recording) == expected


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_batch_elements_count_as_calls_and_are_numbered(transform):
    with jaxcb.record() as recorded:
        jax.block_until_ready(transform(jax.vmap(double))(jnp.arange(5.0)))
        jax.block_until_ready(transform(jax.vmap(double))(jnp.arange(5.0)))
    first = recorded.recording.sample_values[:3]
    assert [(p.element, p.operands, p.results) for p in first] == [
        (0, ("0",), ("0",)), (1, ("1",), ("2",)), (2, ("2",), ("4",)),
    ]  # fmt: skip
    assert "element 2: 2 → 4" in to_text(recorded.recording, values=True)


def fails_at(limit):
    def host(x):
        if x >= limit:
            raise ValueError("no luck")
        return x

    return host


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_arguments_of_a_failed_call_are_kept(transform):
    f = transform(lambda x: call(fails_at(1), (), np.float32, x))
    with jaxcb.record() as recorded:
        f(np.float32(0))
        with pytest.raises(Exception, match="no luck"):
            jax.block_until_ready(f(np.float32(7)))
    assert pairs(recorded.recording) == [(("0",), ("0",)), (("7",), ())]
    assert "7 → ✕ raised" in to_text(recorded.recording, values=True)


def test_sample_values_can_be_turned_off():
    with jaxcb.record(sample_values=False) as recorded:
        double(1.0)
        jax.vmap(double)(jnp.arange(3.0)).block_until_ready()
    assert recorded.recording.sample_values == ()
    assert len(recorded.recording) == 4


DTYPES = [
    np.bool_, np.int8, np.uint8, np.int32, np.uint32, np.float16, np.float32, np.complex64,
    ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 5)], ids=str)
def test_values_of_every_dtype_are_sampled_as_text(dtype, shape):
    value = (np.arange(int(np.prod(shape))) % 2).reshape(shape).astype(dtype)
    words = {"b": ("False", "True"), "c": ("0+0j", "1+0j")}.get(np.dtype(dtype).kind, ("0", "1"))
    shown = [words[n % 2] for n in range(min(value.size, 6))]
    word = f"[{', '.join(shown + ['…'] * (value.size > 6))}]" if shape else shown[0]
    if value.size > 6 and np.dtype(dtype).kind not in "bc":
        word += " (0 to 1)"
    struct = jax.ShapeDtypeStruct(shape, dtype)
    f = lambda x: jaxcb.io_callback(lambda x: x, struct, x)  # noqa: E731
    with jaxcb.record() as recorded:
        f(value)
        jax.jit(jax.vmap(f))(value[None]).block_until_ready()
    assert pairs(recorded.recording) == [((word,), (word,))] * 2


def test_pytrees_are_sampled_leaf_by_leaf():
    struct = {"a": jax.ShapeDtypeStruct((), np.int32), "b": jax.ShapeDtypeStruct((2,), np.float32)}
    with jaxcb.record() as recorded:
        jaxcb.pure_callback(
            lambda x, *, y: {"a": np.int32(3), "b": y}, struct, np.int32(1), y=np.float32([4, 5])
        )
    assert pairs(recorded.recording) == [(("1", "[4, 5]"), ("3", "[4, 5]"))]


class Watched(np.ndarray):
    """An array that supports weak references."""


@pytest.mark.parametrize("elements", [False, True], ids=["single", "elements"])
@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_no_array_of_the_user_is_kept_alive(transform, elements):
    returned_values, operands = [], []

    def host(x):
        operands.append(weakref.ref(x))
        returned_value = np.full(3, 5, np.float32).view(Watched)
        returned_values.append(weakref.ref(returned_value))
        return returned_value

    f = lambda x: call(host, (3,), np.float32, x, vmap_method="sequential")  # noqa: E731
    x = np.ones((2, 3), np.float32)
    with jaxcb.record() as recorded:
        result = transform(jax.vmap(f) if elements else f)(x if elements else x[0])
        jax.block_until_ready(result)
        assert len(returned_values) == (2 if elements else 1)
        gc.collect()
        # Still inside the block, while the recorder is alive and has the sample values.
        assert [ref() for ref in returned_values] == [None] * len(returned_values)
        if transform is jax.jit:  # eager operands may be the caller's own array
            assert [ref() for ref in operands] == [None] * len(operands)
    assert set(pairs(recorded.recording)) == {(("[1, 1, 1]",), ("[5, 5, 5]",))}


def test_later_changes_to_the_arrays_do_not_change_sample_values():
    buffer, x = np.zeros(2, np.float32), np.zeros(2, np.float32)

    def host(x):
        buffer[:] = x + 1
        return buffer

    with jaxcb.record() as recorded:
        for number in range(3):
            x[:] = number
            call(host, (2,), np.float32, x)
        buffer[:] = x[:] = 99
    assert pairs(recorded.recording) == [
        ((f"[{n}, {n}]",), (f"[{n + 1}, {n + 1}]",)) for n in range(3)
    ]


def test_calls_from_several_threads_leave_three_sample_values():
    def work():
        for number in range(50):
            double(np.float32(number))

    with jaxcb.record() as recorded:
        in_threads(lambda _: work(), range(4))
    assert (len(recorded.recording), len(recorded.recording.sample_values)) == (200, 3)
    assert all(float(r) == 2 * float(o) for ((o,), (r,)) in pairs(recorded.recording))


def test_values_are_shown_only_with_values_true_and_survive_json():
    with jaxcb.record() as recorded:
        double(np.float32(1234))
    for recording in (recorded.recording, Recording.from_json(recorded.recording.to_json())):
        assert "1234 → 2468" in to_text(recording, values=True)
        assert "1234 → 2468" in to_html(recording, values=True)
        assert "2468" in str(to_mimebundle(recording, values=True)[0])
        for shown in (to_text(recording), to_html(recording), str(to_mimebundle(recording))):
            assert "→ 2468" not in shown
