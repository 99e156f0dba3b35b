"""Memory: nothing is copied, inputs are read-only, and borrowed memory is not kept."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.buffer_callback import buffer_callback

import jupyter_jaxcb as jaxcb


def address(array):
    return array.__array_interface__["data"][0]


def test_arrays_share_xlas_memory(x):
    seen = []

    def host(context, out, x):
        seen.append((address(x), address(out)))
        out[...] = x

    found = jax.jit(jaxcb.buffer_callback(host, x))(x)
    assert seen == [(x.unsafe_buffer_pointer(), found.unsafe_buffer_pointer())]


@pytest.mark.parametrize("around", [lambda f: f, jax.jit, jax.vmap], ids=["eager", "jit", "vmap"])
def test_writing_an_input_raises_and_changes_nothing(x, around):
    def host(context, out, x):
        x[...] = 9

    before = x.tolist()
    result = x[0] if around is jax.vmap else x
    call = around(jaxcb.buffer_callback(host, result, vmap_method="sequential"))
    with pytest.raises(jax.errors.JaxRuntimeError, match="read-only") as caught:
        jax.block_until_ready(call(x))
    assert isinstance(jaxcb.host_error(caught.value), ValueError)
    assert x.tolist() == before


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_aliased_output_starts_as_a_copy_of_the_input(x, around):
    def add_one(context, out, x):
        out += 1

    call = around(jaxcb.buffer_callback(add_one, x, input_output_aliases={0: 0}))
    before = x.tolist()
    assert call(x).tolist() == (np.asarray(x) + 1).tolist()
    assert x.tolist() == before


ALIASED = {
    "eager": (lambda f: f, lambda x: x),
    "jit": (jax.jit, lambda x: x),
    "vmap": (jax.vmap, lambda x: x[None]),
    "jit of vmap": (lambda f: jax.jit(jax.vmap(f)), lambda x: x[None]),
    "vmap of vmap": (lambda f: jax.vmap(jax.vmap(f)), lambda x: x[None, None]),
    "jit of vmap of vmap": (lambda f: jax.jit(jax.vmap(jax.vmap(f))), lambda x: x[None, None]),
}


@pytest.mark.parametrize(("around", "batch"), ALIASED.values(), ids=ALIASED)
def test_alias_and_its_output_are_one_memory_as_in_jax(x, around, batch):
    def host(context, out, x):
        x, out = np.asarray(x), np.asarray(out)
        seen.append((x.tolist(), address(x) == address(out)))
        out[...] = 2 * out
        seen.append(x.tolist())

    def run(buffer_callback):
        seen.clear()
        call = buffer_callback(host, x, input_output_aliases={0: 0}, vmap_method="sequential")
        return np.asarray(around(call)(batch(x))).tolist(), list(seen)

    seen, before = [], x.tolist()
    twice = np.multiply(x, 2).tolist()
    mine = run(jaxcb.buffer_callback)
    assert mine == run(buffer_callback)
    assert mine == (batch(np.array(twice)).tolist(), [(before, True), twice])
    assert x.tolist() == before


def test_donated_alias_is_written_in_place(x):
    def add_one(context, out, x):
        out += 1

    compiled = jax.jit(
        jaxcb.buffer_callback(add_one, x, input_output_aliases={0: 0}), donate_argnums=0
    )
    mine, expected = x + 0, np.asarray(x) + 1
    at = mine.unsafe_buffer_pointer()
    found = compiled(mine)
    assert found.unsafe_buffer_pointer() == at
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "aliases, words",
    [
        ({2: 0}, "input index 2 outside the range \\[0, 2\\)"),
        ({0: 1}, "output index 1 outside the range \\[0, 1\\)"),
        ({-1: 0}, "input index -1 outside"),
        ({1: 0}, r"value float32\[\] and an output with a different abstract value float32\[2,3\]"),
    ],
)
def test_aliases_that_do_not_fit_are_refused(x, aliases, words):
    call = jaxcb.buffer_callback(lambda context, out, x, y: None, x, input_output_aliases=aliases)
    with pytest.raises(ValueError, match=words):
        call(x, jnp.float32(1))


@pytest.mark.parametrize("vmapped", [False, True])
def test_array_that_is_kept_is_named_and_copied(x, vmapped):
    kept = []

    def host(context, out, x):
        kept.append(x)
        out[...] = x

    call = jaxcb.buffer_callback(host, x[0] if vmapped else x, vmap_method="sequential")
    compiled = jax.jit(jax.vmap(call) if vmapped else call)
    with pytest.warns(
        jaxcb.RetainedBufferWarning, match="buffer callback host kept args\\[0\\] after"
    ) as reported:
        jax.block_until_ready(compiled(x))
    assert (reported[0].filename, reported[0].lineno) == (__file__, host.__code__.co_firstlineno)
    if not vmapped:
        assert "Buffer" not in type(kept[0].base).__name__
        assert kept[0].tolist() == x.tolist()


@pytest.mark.parametrize(("around", "batch"), ALIASED.values(), ids=ALIASED)
def test_argument_is_exported_by_dlpack_as_in_jax(x, around, batch):
    def kind(capsule):
        return str(capsule).split()[2]

    def host(context, out, x):
        shared = jax.dlpack.from_dlpack(x)
        flagged = np.from_dlpack(x)
        asked = x.__dlpack__(stream=None, max_version=None, dl_device=None, copy=None)
        seen.append((shared.tolist(), flagged.flags.writeable, *map(kind, (x.__dlpack__(), asked))))
        assert address(flagged) == address(np.asarray(x))
        assert x in {x}
        np.asarray(out)[...] = 2 * np.asarray(shared)

    def run(buffer_callback):
        seen.clear()
        call = buffer_callback(host, x, vmap_method="sequential")
        return np.asarray(around(call)(batch(x))).tolist(), list(seen)

    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mine = run(jaxcb.buffer_callback)
    assert mine == run(buffer_callback)
    seen_once = (x.tolist(), False, '"dltensor"', '"dltensor"')
    assert mine == (batch(np.asarray(x) * 2).tolist(), [seen_once])


def test_eager_output_that_is_kept_cannot_change_jaxs_array(x):
    kept = []

    def host(context, out, x):
        kept.append(out)
        out[...] = x

    found = jaxcb.buffer_callback(host, x)(x)
    kept[0][...] = 99
    assert found.tolist() == x.tolist()
