"""The static vmap diagram, and which saved host traces are open."""

import contextlib
import re
from html import unescape

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import (
    VMAP_METHODS,
    WHOLE_BATCH,
    Aval,
    LoweredSite,
    Program,
    Recorder,
    Site,
    VmapLevel,
    record_call,
)
from jupyter_jaxcb.report import to_html
from jupyter_jaxcb.report.summary import Shapes, Stopped, summarize
from jupyter_jaxcb.report.text._diagram import MAX_DIAGRAMS, element_words

SITE = Site("pure", "planck", "<cell>", 3, 4, cell=True, source="planck(nm, kelvin)")


def recorded(*variants, site=SITE, error=None, **names):
    """Return a recording of one call of each variant (operand shapes, result shape, levels)."""
    recorder = Recorder()
    recorder.bound(site)
    for place, (operands, result, levels) in enumerate(variants):
        avals = tuple(Aval(shape, "float32") for shape in operands)
        results = (Aval(result, "float32"),)
        fact = LoweredSite(site, Program("jit_f", "cpu"), place, avals, results, levels, **names)
        recorder.lowered(fact)
        record_call(recorder, fact, 1, 10, 20, error)
    return recorder.freeze(cells=("<cell>",))


def table_of(html):
    """Return the cells of the last table, row by row."""
    rows = re.findall(r"<tr>(.*?)</tr>", html.rpartition("<table>")[2])
    return [[re.sub(r"<[^>]*>", "", cell) for cell in re.split(r"</t[hd]>", r)[:-1]] for r in rows]


def level(size, method, batched):
    """Return what a vmap did, by the name of its method."""
    return VmapLevel(size, VMAP_METHODS[method], batched)


def nested(method):
    """Return two vmap levels: 3 wavelengths (innermost) and 4 stars (outermost)."""
    return (level(3, method, (True, False)), level(4, method, (False, True)))


HEADER = ["", "vmap 4 (outermost)", "vmap 3 (innermost)", "own axes"]


@pytest.mark.parametrize(
    ("method", "shapes", "rows"),
    [
        (
            "expand_dims",
            ([(1, 3), (4, 1)], (4, 3)),
            [
                ["argument 1", "size 1", "3 batched", "scalar", "(1, 3) float32"],
                ["argument 2", "4 batched", "size 1", "scalar", "(4, 1) float32"],
                ["result", "4 batched", "3 batched", "scalar", "(4, 3) float32"],
            ],
        ),
        (
            "broadcast_all",
            ([(4, 3), (4, 3, 5)], (4, 3)),
            [
                ["argument 1", "4 tiled", "3 batched", "scalar", "(4, 3) float32"],
                ["argument 2", "4 batched", "3 tiled", "(5,)", "(4, 3, 5) float32"],
                ["result", "4 batched", "3 batched", "scalar", "(4, 3) float32"],
            ],
        ),
        (
            "legacy_vectorized",
            ([(3,), (4,)], (4, 3)),
            [
                ["argument 1", "no axis", "3 batched", "scalar", "(3,) float32"],
                ["argument 2", "4 batched", "no axis", "scalar", "(4,) float32"],
                ["result", "4 batched", "3 batched", "scalar", "(4, 3) float32"],
            ],
        ),
        (
            "sequential",
            ([(3,), (4, 2)], (4, 3)),  # the whole batch, which the loop on the host slices
            [
                ["argument 1", "no axis", "3 looped over", "scalar", "() float32"],
                ["argument 2", "4 looped over", "no axis", "(2,)", "(2,) float32"],
                ["result", "4 looped over", "3 looped over", "scalar", "() float32"],
            ],
        ),
    ],
)
def test_diagram_shows_what_each_vmap_did_to_each_axis(method, shapes, rows):
    html = to_html(recorded((*shapes, nested(method))))
    head, *arguments, returned, result = table_of(html)
    receives = "each call receives" if method == "sequential" else "one call receives"
    assert head == [*HEADER, receives]
    assert returned == ["", "", "", "", "and must return"]
    assert [*arguments, result] == rows
    assert f"</strong> · planck, line 3 · {method}</p>" in html


def test_shapes_that_contradict_the_vmaps_get_no_diagram():
    html = to_html(recorded(([(7, 7), (4, 1)], (4, 3), nested("expand_dims"))))
    assert "<table>" not in html


@pytest.mark.parametrize(("shape", "drawn"), [((3, 2), True), ((2, 3), False)])
def test_tap_has_a_diagram_if_the_program_has_the_batch_axis_in_front(shape, drawn):
    html = to_html(recorded(([shape], (3,), (VmapLevel(3, WHOLE_BATCH, (True,)),))))
    assert ("3 batched" in html) == drawn


def test_call_without_vmap_has_no_diagram_and_stays_closed():
    html = to_html(recorded(([(3,)], (3,), ())))
    assert "<table>" not in html
    assert '<details class="jaxcb"><summary>' in html


def test_host_trace_with_a_diagram_or_an_error_is_open():
    opened = '<details class="jaxcb" open><summary>'
    assert opened in to_html(recorded(([(3,)], (3,), (level(3, "expand_dims", (True,)),))))
    assert opened in to_html(recorded(([(3,)], (3,), ()), error="ValueError: no luck"))


def test_equal_diagrams_are_drawn_once_and_their_number_is_limited():
    same = ([(4,)], (4,), (level(4, "expand_dims", (True,)),))
    assert to_html(recorded(same, same)).count("<table>") == 1
    many = [([(n,)], (n,), (level(n, "expand_dims", (True,)),)) for n in range(2, 20)]
    assert to_html(recorded(*many)).count("<table>") == MAX_DIAGRAMS


def test_diagram_names_arguments_and_results_as_the_host_function_does():
    shapes = ([(3,), (4, 2)], (4, 3), nested("sequential"))
    names = {"operand_names": ("nm", "star['kelvin']"), "result_names": ("result['flux']",)}
    _, *rows = table_of(to_html(recorded(shapes, **names)))
    found = [unescape(row[0]) for row in rows]
    assert found == ["nm", "star['kelvin']", "", "result['flux']"]


def test_arguments_that_a_line_names_differently_are_numbered():
    recorder = Recorder()
    recorder.bound(SITE)
    aval = (Aval((3,), "float32"),)
    for name in ("a", "b"):
        fact = LoweredSite(SITE, Program("jit_f", "cpu"), 0, aval, aval, operand_names=(name,))
        recorder.lowered(fact)
        record_call(recorder, fact, 1, 10, 20)
    (site,) = summarize(recorder.freeze(cells=("<cell>",)))
    assert [shapes.operand_names for shapes in site.shapes] == [()]


MIXED = (level(3, "expand_dims", ()), level(4, "sequential", ()))
TWO = (level(2, "sequential", ()), *MIXED)
ONE = (level(1, "sequential", ()),)


@pytest.mark.parametrize(
    ("levels", "calls", "words"),
    [
        (nested("expand_dims"), 1, "1 call for 12 elements (4 × 3)"),
        (nested("expand_dims"), 3, "3 calls, each for 12 elements (4 × 3)"),
        (nested("expand_dims"), 0, "1 call for 12 elements (4 × 3) each time"),
        (nested("sequential"), 12, "12 calls (4 × 3), one for each element"),
        (nested("sequential"), 24, "24 calls, 12 (4 × 3) each time, one for each element"),
        (nested("sequential"), 7, "7 calls, 12 (4 × 3) each time, one for each element"),
        (nested("sequential"), 0, "12 calls (4 × 3) each time, one for each element"),
        (MIXED, 4, "4 calls, each for 3 elements"),
        (MIXED, 8, "8 calls, 4 each time, each for 3 elements"),
        (TWO, 8, "8 calls (4 × 2), each for 3 elements"),
        (ONE, 1, "1 call for 1 element"),
        (ONE, 2, "2 calls, each for 1 element"),
        ((level(0, "sequential", ()),), 0, "no calls, because the batch is empty"),
        ((level(0, "expand_dims", ()),), 0, "no calls, because the batch is empty"),
        ((level(12_000, "expand_dims", ()),), 1, "1 call for 12,000 elements"),
    ],
)
def test_sentence_says_how_batch_elements_are_spread_over_calls(levels, calls, words):
    """The front end's tests have the same cases."""
    assert element_words(Shapes((), (), levels, calls, 0, (), 0, ())) == words


@pytest.mark.parametrize(
    ("levels", "calls", "stopped", "words"),
    [
        (nested("sequential"), 9, (8, 1), "9 of 12 calls (4 × 3); stopped at element 8"),
        (ONE, 1, None, "1 call for 1 element"),
        (
            nested("sequential"), 33, (8, 1),
            "33 calls, 12 (4 × 3) each time, one for each element; stopped at element 8",
        ),
        (
            nested("sequential"), 15, (8, 3),
            "15 calls, 12 (4 × 3) each time, one for each element; "
            "stopped 3 times, first at element 8",
        ),
        (MIXED, 2, (1, 1), "2 of 4 calls, each for 3 elements; stopped at element 1"),
    ],
)  # fmt: skip
def test_sentence_says_at_which_batch_element_the_calls_stopped(levels, calls, stopped, words):
    """The front end's tests have the same cases."""
    stop = stopped and Stopped(*stopped)
    assert element_words(Shapes((), (), levels, calls, 0, (), 0, (), stopped=stop)) == words


@pytest.mark.parametrize(
    ("failing", "stopped", "calls"),
    [
        (None, None, "24 calls"),
        (8, (8, 1), "9 of 12 calls"),
        (20, (8, 1), "21 calls"),
        (23, None, "24 calls"),  # the last element
    ],
)
def test_report_says_at_which_batch_element_the_host_function_raised(failing, stopped, calls):
    @jaxcb.pure(result="x")
    def work(x):
        if x == failing:
            raise ValueError("no luck")
        return x

    program = jax.jit(lambda x: jax.lax.map(jax.vmap(work), x))
    with jaxcb.record() as r, contextlib.suppress(Exception):
        jax.block_until_ready(program(np.arange(24).reshape(2, 12)))
    ((variant,),) = [site.shapes for site in summarize(r.recording)]
    assert variant.stopped == stopped
    text = str(r.recording)
    assert f"  {calls}  " in text
    assert ("vmap 12, sequential, stopped at element 8" in text) == bool(stopped)


def test_diagram_escapes_names_and_can_be_read_without_styles():
    site = Site("pure", "<lambda>", "<cell>", 3, 4, cell=True, source="x")
    one = level(4, "expand_dims", (True,))
    names = {"operand_names": ("params['<img src=x>']",)}
    html = to_html(recorded(([(4,)], (4,), (one,)), site=site, **names))
    tags = re.findall(r"<(\w+)", html.partition("</details>")[0].partition("</ul>")[2])
    assert {*tags} == {"p", "strong", "table", "tr", "th", "td", "code", "b"}
    assert "planck" not in html
    assert "&lt;lambda&gt;, line 3" in html
    assert "params[&#x27;&lt;img src=x&gt;&#x27;]" in html
    plain = [[re.sub(r"<[^>]*>", "", cell) for cell in row] for row in table_of(html)]
    assert plain[1][1:] == ["4 batched", "scalar", "(4,) float32"]
