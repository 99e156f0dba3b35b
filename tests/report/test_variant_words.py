"""Variants of a call site: vmaps and their arguments, shards and their devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import (
    VMAP_METHODS,
    Aval,
    AxisKind,
    LoweredSite,
    Program,
    Recorder,
    Site,
    VmapLevel,
    record_call,
)
from jupyter_jaxcb.report import MIME_TYPE, to_html, to_mimebundle, to_text
from jupyter_jaxcb.report.text import _words

SITE = Site("pure", "f", "m.py", 3, 0, cell=False, source="f(x)")


def add(method):
    return lambda x, y: jaxcb.pure_callback(
        lambda x, y: np.asarray(x + y, np.float32), jax.ShapeDtypeStruct((), np.float32), x, y,
        vmap_method=method,
    )  # fmt: skip


def row(recording):
    """Return the variant in the only row of the text, after checking that the HTML has it too."""
    (line,) = to_text(recording, times=False).splitlines()[1:]
    variant = line.partition(" → ")[2].partition("  ")[2].strip()
    assert not variant or f" · {variant}</li>" in to_html(recording)
    return variant


def recorded(run):
    with jaxcb.record() as recorded:
        jax.block_until_ready(run())
    return recorded.recording


XS = np.arange(3, dtype=np.float32)
Y = np.float32(1)
UNBATCHED = {
    AxisKind.UNBATCHED: "unbatched", AxisKind.SIZE1: "size-1 axis", AxisKind.TILED: "tiled"
}  # fmt: skip


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("method", VMAP_METHODS)
def test_unbatched_arguments_are_named(method, transform):
    other = UNBATCHED[VMAP_METHODS[method].unbatched]
    for axes, args, words in (
        ((0, None), (XS, Y), f"batched, {other}"),
        ((None, 0), (Y, XS), f"{other}, batched"),
    ):
        f = transform(jax.vmap(add(method), axes))
        assert row(recorded(lambda f=f, args=args: f(*args))) == f"vmap 3 ({words}), {method}"


@pytest.mark.parametrize("method", VMAP_METHODS)
def test_arguments_are_not_listed_if_all_are_batched(method):
    assert row(recorded(lambda: jax.jit(jax.vmap(add(method)))(XS, XS))) == f"vmap 3, {method}"


def test_host_function_gets_the_axes_that_are_shown():
    seen = []

    def host(x, y):
        seen.append((x.shape, y.shape))
        return np.broadcast_to(x + y, (3,)).astype(np.float32)

    for method, shape in (("expand_dims", (1,)), ("broadcast_all", (3,))):
        f = lambda x, y, method=method: jaxcb.pure_callback(  # noqa: E731
            host, jax.ShapeDtypeStruct((), np.float32), x, y, vmap_method=method
        )
        variant = row(recorded(lambda f=f: jax.vmap(f, (0, None))(XS, Y)))
        assert variant == f"vmap 3 (batched, {UNBATCHED[VMAP_METHODS[method].unbatched]}), {method}"
        assert seen.pop() == ((3,), shape)


def test_nested_vmaps_are_named_outermost_first():
    f = jax.vmap(jax.vmap(add("sequential"), (0, None)), (None, 0))
    variant = row(recorded(lambda: jax.jit(f)(XS, jnp.ones(2))))
    assert variant == "vmap 2 (unbatched, batched) × vmap 3 (batched, unbatched), sequential"


def test_arguments_are_listed_only_at_the_level_with_an_unbatched_one():
    f = jax.vmap(jax.vmap(add("expand_dims"), (0, None)))
    variant = row(recorded(lambda: jax.jit(f)(jnp.ones((2, 3)), jnp.ones(2))))
    assert variant == "vmap 2 × vmap 3 (batched, size-1 axis), expand_dims"


def test_call_without_vmap_shows_no_variant():
    assert row(recorded(lambda: jax.jit(add("sequential"))(Y, Y))) == ""


def recording_of(*facts):
    recorder = Recorder()
    for fact in facts:
        recorder.lowered(fact)
        record_call(recorder, fact, 1, 0, 1)
    return recorder.freeze()


PROGRAM = Program("jit_f", "cpu", 1)


def shards(names, program=PROGRAM, **facts):
    value = (Aval((2,), "float32"),)
    return [
        LoweredSite(SITE, program, 0, value, value, devices=len(names), shard=shard, device=name,
                    **facts)
        for shard, name in enumerate(names)
    ]  # fmt: skip


def test_shards_are_counted_and_their_devices_named_by_shard():
    facts = shards(["cpu:2", "cpu:0", "cpu:3", "cpu:1"])
    assert row(recording_of(*facts)) == "4 shards (cpu:2, cpu:0, cpu:3, cpu:1)"
    assert row(recording_of(*facts[::-1])) == "4 shards (cpu:2, cpu:0, cpu:3, cpu:1)"


def test_at_most_eight_devices_are_named():
    names = [f"cpu:{number}" for number in range(10)]
    assert row(recording_of(*shards(names[:8]))) == f"8 shards ({', '.join(names[:8])})"
    assert row(recording_of(*shards(names))) == f"10 shards ({', '.join(names[:8])}, …)"


def test_shards_on_unknown_devices_are_only_counted():
    assert row(recording_of(*shards(["", ""]))) == "2 shards"


def test_two_programs_on_the_same_devices_have_no_more_shards_than_devices():
    names = ["cpu:0", "cpu:1"]
    facts = [*shards(names), *shards(names, Program("jit_g", "cpu", 2))]
    assert row(recording_of(*facts)) == "2 shards (cpu:0, cpu:1)"


@pytest.mark.parametrize(
    ("size", "words"), [(160, "160 B"), (4_096, "4.1 kB"), (2_000_000, "2 MB")]
)
def test_gathered_bytes_are_shown(size, words):
    value = (Aval((2,), "float32"),)
    fact = LoweredSite(SITE, None, 0, value, value, devices=4, gathered_bytes=size)
    recording = recording_of(fact)
    assert row(recording) == f"gathers {words}"
    ((shapes,),) = [site["shapes"] for site in to_mimebundle(recording)[0][MIME_TYPE]["sites"]]
    assert shapes["gathered_bytes"] == size
    assert "shards" not in shapes


def test_vmap_shards_and_gathering_are_listed_together():
    level = VmapLevel(2, VMAP_METHODS["sequential"], (True,))
    variant = row(recording_of(*shards(["cpu:0", "cpu:1"], levels=(level,), gathered_bytes=8)))
    assert variant == "vmap 2, sequential, 2 shards (cpu:0, cpu:1), gathers 8 B"


def test_words_of_a_site_with_many_shapes_are_made_once_for_each_shape(monkeypatch):
    """Otherwise a cell that calls with a thousand shapes would take seconds to end."""
    recorder = Recorder(clock=lambda: 0)
    for size in range(300):
        for dtype in ("float32", "int32"):
            record_call(recorder, LoweredSite(SITE, None, -1, (Aval((size,), dtype),), ()), 1, 0, 9)
    made = []
    words = _words.call_shapes
    monkeypatch.setattr(_words, "call_shapes", lambda shapes: made.append(1) or words(shapes))
    text = to_text(recorder.freeze(), times=False)
    assert "float32[7] → nothing" in text and "int32[7] → nothing" in text
    assert len(made) <= 4 * 600


def test_row_of_text_leaves_out_what_is_alike_of_many_arguments():
    f = jaxcb.pure(lambda *xs: (xs[0], *xs[:4]), result=lambda *xs: (xs[0], *xs[:4]))
    with jaxcb.record() as r:
        jax.block_until_ready(jax.vmap(f, (0, 0, None, 0, 0, 0))(*[np.ones((3, 2))] * 6))
    (row,) = [line for line in str(r.recording).splitlines() if "vmap" in line]
    assert "(2,), (2,), (3, 2), … 6 in all → (2,), (2,), (2,), … 5 in all" in row
    assert "vmap 3 (batched, batched, unbatched, … 6 in all), sequential" in row
