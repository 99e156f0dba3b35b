"""Variants of a call site: what each vmap did to which array, shards, and the vmap diagram."""

import contextlib
import re
from html import unescape

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import VMAP_METHODS, AxisKind
from jupyter_jaxcb.report.summary import Mask, Shapes, Stopped, drawn, variant_views
from tests.interface import Aval, LoweredSite, Program, Site, to_html, to_text

from ._several import called, data_of, f32, level

SITE = Site("pure", "planck", "<cell>", 3, 4, cell=True, source="planck(nm, kelvin)")


def recorded(operands, result, levels, error=None, **names):
    """Return a recording of one call with these shapes."""
    operands, results = tuple(f32(*shape) for shape in operands), (f32(*result),)
    fact = LoweredSite(SITE, Program("jit_f", "cpu"), 0, operands, results, levels, **names)
    return called(fact, error=error, cells=("<cell>",))


def table_of(html):
    """Return the cells of the last table, row by row."""
    rows = re.findall(r"<tr>(.*?)</tr>", html.rpartition("<table>")[2])
    return [[re.sub(r"<[^>]*>", "", cell) for cell in re.split(r"</t[hd]>", r)[:-1]] for r in rows]


def nested(method):
    """Return two vmap levels: 3 wavelengths (innermost) and 4 stars (outermost)."""
    return level(3, method, (True, False)), level(4, method, (False, True))


@pytest.mark.parametrize(
    ("method", "shapes", "rows"),
    [
        ("expand_dims", ([(1, 3), (4, 1)], (4, 3)), [
            ["argument 1", "size 1", "3 batched", "scalar", "(1, 3) float32"],
            ["argument 2", "4 batched", "size 1", "scalar", "(4, 1) float32"],
            ["result", "4 batched", "3 batched", "scalar", "(4, 3) float32"],
        ]),
        ("broadcast_all", ([(4, 3), (4, 3, 5)], (4, 3)), [
            ["argument 1", "4 tiled", "3 batched", "scalar", "(4, 3) float32"],
            ["argument 2", "4 batched", "3 tiled", "(5,)", "(4, 3, 5) float32"],
            ["result", "4 batched", "3 batched", "scalar", "(4, 3) float32"],
        ]),
        ("legacy_vectorized", ([(3,), (4,)], (4, 3)), [
            ["argument 1", "no axis", "3 batched", "scalar", "(3,) float32"],
            ["argument 2", "4 batched", "no axis", "scalar", "(4,) float32"],
            ["result", "4 batched", "3 batched", "scalar", "(4, 3) float32"],
        ]),
        # The whole batch, which the loop on the host slices.
        ("sequential", ([(3,), (4, 2)], (4, 3)), [
            ["argument 1", "no axis", "3 looped over", "scalar", "() float32"],
            ["argument 2", "4 looped over", "no axis", "(2,)", "(2,) float32"],
            ["result", "4 looped over", "3 looped over", "scalar", "() float32"],
        ]),
    ],
)  # fmt: skip
def test_diagram_shows_what_each_vmap_did_to_each_axis(method, shapes, rows):
    html = to_html(recorded(*shapes, nested(method)))
    head, *arguments, returned, result = table_of(html)
    receives = "each call receives" if method == "sequential" else "one call receives"
    assert head == ["", "vmap 4 (outermost)", "vmap 3 (innermost)", "own axes", receives]
    assert returned == ["", "", "", "", "and must return"]
    assert [*arguments, result] == rows
    assert f"</strong> · planck, line 3 · {method}</p>" in html


def test_host_trace_is_open_if_it_has_a_diagram_or_an_error():
    opened, plain = '<details class="jaxcb" open><summary>', ([(3,)], (3,), ())
    assert opened in to_html(recorded([(3,)], (3,), (level(3, "expand_dims", (True,)),)))
    assert opened in to_html(recorded(*plain, error="ValueError: no luck"))
    html = to_html(recorded(*plain))
    assert '<details class="jaxcb"><summary>' in html and "<table>" not in html


def test_diagram_names_arguments_and_results_as_the_host_function_does():
    names = {"operand_names": ("nm", "star['kelvin']"), "result_names": ("result['flux']",)}
    _, *rows = table_of(to_html(recorded([(3,), (4, 2)], (4, 3), nested("sequential"), **names)))
    assert [unescape(row[0]) for row in rows] == ["nm", "star['kelvin']", "", "result['flux']"]


def test_shapes_that_contradict_the_vmaps_get_no_diagram():
    assert "<table>" not in to_html(recorded([(7, 7), (4, 1)], (4, 3), nested("expand_dims")))


@pytest.mark.parametrize(
    ("failing", "calls"),
    [(None, "24 calls"), (8, "9 of 12 calls"), (20, "21 calls"), (23, "24 calls")],
)
def test_report_says_at_which_batch_element_the_host_function_raised(failing, calls):
    @jaxcb.pure(result="x")
    def work(x):
        if x == failing:
            raise ValueError("no luck")
        return x

    program = jax.jit(lambda x: jax.lax.map(jax.vmap(work), x))
    with jaxcb.record() as r, contextlib.suppress(Exception):
        jax.block_until_ready(program(np.arange(24).reshape(2, 12)))
    text = to_text(r.recording)
    assert f"  {calls}  " in text
    stops = failing in (8, 20)  # not the last element
    assert ("vmap 12, sequential, stopped at element 8" in text) == ("stopped" in text) == stops


def loop(size):
    return level(size, "sequential")


MIXED = (level(3, "expand_dims"), loop(4))
TOGETHER, LOOPED = (level(3, "expand_dims"), level(4, "expand_dims")), (loop(3), loop(4))
ONE_EACH = "12 (4 × 3) each time, one for each element"


def masked(needed, of):
    return {"mask": Mask((True, True), needed, of)}


def stopped(*at):
    return {"stopped": Stopped(*at)}


@pytest.mark.parametrize(
    ("levels", "calls", "more", "words"),
    [
        (TOGETHER, 1, {}, "1 call for 12 elements (4 × 3)"),
        (TOGETHER, 3, {}, "3 calls, each for 12 elements (4 × 3)"),
        (TOGETHER, 0, {}, "1 call for 12 elements (4 × 3) each time"),
        (LOOPED, 12, {}, "12 calls (4 × 3), one for each element"),
        (LOOPED, 24, {}, f"24 calls, {ONE_EACH}"),
        (LOOPED, 0, {}, "12 calls (4 × 3) each time, one for each element"),
        (MIXED, 4, {}, "4 calls, each for 3 elements"),
        (MIXED, 8, {}, "8 calls, 4 each time, each for 3 elements"),
        ((loop(2), *MIXED), 8, {}, "8 calls (4 × 2), each for 3 elements"),
        ((loop(1),), 1, {}, "1 call for 1 element"),
        ((loop(1),), 2, {}, "2 calls, each for 1 element"),
        ((loop(0),), 0, {}, "no calls, because the batch is empty"),
        ((level(0, "expand_dims"),), 0, {}, "no calls, because the batch is empty"),
        ((level(12_000, "expand_dims"),), 1, {}, "1 call for 12,000 elements"),
        (LOOPED, 9, stopped(8, 1), "9 of 12 calls (4 × 3); stopped at element 8"),
        (LOOPED, 15, stopped(8, 3), f"15 calls, {ONE_EACH}; stopped 3 times, first at element 8"),
        (MIXED, 2, stopped(1, 1), "2 of 4 calls, each for 3 elements; stopped at element 1"),
        (TOGETHER, 1, masked(5, 12), "1 call for 5 of 12 elements"),
        (TOGETHER, 0, masked(0, 1), "0 calls for 0 of 1 element"),
        (TOGETHER, 0, masked(0, 0), "calls for the elements whose mask is true"),
        ((), 2, masked(2, 3), ""),  # without vmap there are no elements, but calls
    ],
)
def test_words_say_how_batch_elements_are_spread_over_calls(levels, calls, more, words):
    shapes = Shapes((), (), levels, calls, 0, (), 0, (), **more)
    (view,) = variant_views([shapes])
    assert drawn(view, shapes).elements == words


def test_many_arrays_are_counted_not_listed():
    many = tuple(f32(n) for n in range(900))
    fact = LoweredSite(SITE, None, 0, many, many[:1] * 900)
    ((one,),) = [site["shapes"] for site in data_of(called(fact))[0]["sites"]]
    assert len(one["shapes"]) < 400
    assert one["shapes"].endswith("and 870 more → 900 × (0,)")
    assert one["arrays"].startswith("(0,) float32, (1,) float32, ")


def test_variants_that_differ_only_in_dtypes_are_told_apart():
    avals = [(Aval((3,), dtype),) for dtype in ("float32", "int32")]
    facts = [LoweredSite(SITE, None, n, aval, aval) for n, aval in enumerate(avals)]
    for report in (to_text(called(*facts)), to_html(called(*facts))):
        assert "float32[3] → float32[3]" in report and "int32[3] → int32[3]" in report
    assert "(3,) → (3,)" in to_text(called(facts[1]))


def row(recording):
    """Return the variant in the only row of the text, after checking that the HTML has it too."""
    (line,) = to_text(recording, times=False).splitlines()[1:]
    variant = line.partition(" → ")[2].partition("  ")[2].strip()
    assert not variant or f" · {variant}</li>" in to_html(recording)
    return variant


XS, Y = np.arange(3, dtype=np.float32), np.float32(1)
UNBATCHED = {  # words, and what the host function gets
    AxisKind.UNBATCHED: ("unbatched", ()),
    AxisKind.SIZE1: ("size-1 axis", (1,)),
    AxisKind.TILED: ("tiled", (3,)),
}


def add(method, seen):
    def host(x, y):
        seen.append((x.shape, y.shape))
        return np.asarray(x + y, np.float32)

    struct = jax.ShapeDtypeStruct((), np.float32)
    return lambda x, y: jaxcb.pure_callback(host, struct, x, y, vmap_method=method)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("method", VMAP_METHODS)
def test_unbatched_arguments_are_named_and_have_the_axes_that_are_shown(method, transform):
    other, shape = UNBATCHED[VMAP_METHODS[method].unbatched]
    for axes, args, words in (
        ((0, None), (XS, Y), f"batched, {other}"),
        ((None, 0), (Y, XS), f"{other}, batched"),
    ):
        seen = []
        with jaxcb.record() as r:
            jax.block_until_ready(transform(jax.vmap(add(method, seen), axes))(*args))
        assert row(r.recording) == f"vmap 3 ({words}), {method}"
        batched = () if VMAP_METHODS[method].looped else (3,)
        assert seen[-1][axes.index(None)] == shape and seen[-1][axes.index(0)] == batched


def test_nested_vmaps_are_named_outermost_first():
    f = jax.vmap(jax.vmap(add("sequential", []), (0, None)), (None, 0))
    with jaxcb.record() as r:
        jax.jit(f)(XS, np.ones(2)).block_until_ready()
    words = "vmap 2 (unbatched, batched) × vmap 3 (batched, unbatched), sequential"
    assert row(r.recording) == words


@pytest.mark.parametrize(("size", "words"), [(4_096, "4.1 kB"), (2_000_000, "2 MB")])
def test_gathered_bytes_are_shown(size, words):
    fact = LoweredSite(SITE, None, 0, (f32(2),), (), devices=4, gathered_bytes=size)
    assert row(called(fact)) == f"gathers {words}"


def test_row_of_text_leaves_out_what_is_alike_of_many_arguments():
    f = jaxcb.pure(lambda *xs: (xs[0], *xs[:4]), result=lambda *xs: (xs[0], *xs[:4]))
    with jaxcb.record() as r:
        jax.block_until_ready(jax.vmap(f, (0, 0, None, 0, 0, 0))(*[np.ones((3, 2))] * 6))
    (line,) = [line for line in to_text(r.recording).splitlines() if "vmap" in line]
    assert "(2,), (2,), (3, 2), 3 × (2,) → 3 × (2,), (3, 2), (2,)" in line
    assert "vmap 3 (batched, batched, unbatched, … 6 in all), sequential" in line
