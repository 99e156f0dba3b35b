"""The static vmap diagram, and which saved host traces are open."""

import re
from html.parser import HTMLParser

import pytest

from jupyter_jaxcb.recording import Aval, LoweredSite, Program, Recorder, Site, VmapLevel
from jupyter_jaxcb.report import to_html
from jupyter_jaxcb.report.text._diagram import MAX_DIAGRAMS

SITE = Site("pure", "planck", "<cell>", 3, 4, cell=True, source="planck(nm, kelvin)")


def recorded(*variants, site=SITE, error=None):
    """Return a recording of one call of each variant (operand shapes, result shape, levels)."""
    recorder = Recorder()
    recorder.bound(site)
    for place, (operands, result, levels) in enumerate(variants):
        avals = tuple(Aval(shape, "float32") for shape in operands)
        results = (Aval(result, "float32"),)
        fact = LoweredSite(site, Program("jit_f", "cpu"), place, avals, results, levels)
        recorder.lowered(fact)
        recorder.called(fact, 1, 10, 20, error)
    return recorder.freeze(cells=("<cell>",))


def table_of(html):
    """Return the cells of the last table, row by row."""
    rows = re.findall(r"<tr>(.*?)</tr>", html.rpartition("<table>")[2])
    return [[re.sub(r"<[^>]*>", "", cell) for cell in re.split(r"</t[hd]>", r)[:-1]] for r in rows]


def nested(method):
    """Return two vmap levels: 3 wavelengths (innermost) and 4 stars (outermost)."""
    return (VmapLevel(3, method, (True, False)), VmapLevel(4, method, (False, True)))


HEADER = ["", "vmap 4 (outermost)", "vmap 3 (innermost)", "own axes", "host function sees"]


@pytest.mark.parametrize(
    ("method", "shapes", "rows"),
    [
        (
            "expand_dims",
            ([(1, 3), (4, 1)], (4, 3)),
            [
                ["operand 1", "1, size-1 axis", "3, batched", "scalar", "(1, 3)"],
                ["operand 2", "4, batched", "1, size-1 axis", "scalar", "(4, 1)"],
                ["result", "4, batched", "3, batched", "scalar", "(4, 3)"],
            ],
        ),
        (
            "broadcast_all",
            ([(4, 3), (4, 3, 5)], (4, 3)),
            [
                ["operand 1", "4, tiled", "3, batched", "scalar", "(4, 3)"],
                ["operand 2", "4, batched", "3, tiled", "(5,)", "(4, 3, 5)"],
                ["result", "4, batched", "3, batched", "scalar", "(4, 3)"],
            ],
        ),
        (
            "legacy_vectorized",
            ([(3,), (4,)], (4, 3)),
            [
                ["operand 1", "unbatched", "3, batched", "scalar", "(3,)"],
                ["operand 2", "4, batched", "unbatched", "scalar", "(4,)"],
                ["result", "4, batched", "3, batched", "scalar", "(4, 3)"],
            ],
        ),
        (
            "sequential",
            ([(3,), (4, 2)], (4, 3)),  # the whole batch, which the loop on the host slices
            [
                ["operand 1", "unbatched", "3, looped over", "scalar", "()"],
                ["operand 2", "4, looped over", "unbatched", "(2,)", "(2,)"],
                ["result", "4, looped over", "3, looped over", "scalar", "()"],
            ],
        ),
    ],
)
def test_diagram_shows_what_each_vmap_did_to_each_axis(method, shapes, rows):
    html = to_html(recorded((*shapes, nested(method))))
    assert table_of(html) == [HEADER, *rows]
    assert f"<p>vmap in planck, line 3: {method}</p>" in html


def test_shapes_that_contradict_the_vmaps_get_no_diagram():
    html = to_html(recorded(([(7, 7), (4, 1)], (4, 3), nested("expand_dims"))))
    assert html.count("<table>") == 1


def test_call_without_vmap_has_no_diagram_and_stays_closed():
    html = to_html(recorded(([(3,)], (3,), ())))
    assert html.count("<table>") == 1
    assert '<details class="jaxcb"><summary>' in html


def test_host_trace_with_a_diagram_or_an_error_is_open():
    opened = '<details class="jaxcb" open><summary>'
    assert opened in to_html(recorded(([(3,)], (3,), (VmapLevel(3, "expand_dims", (True,)),))))
    assert opened in to_html(recorded(([(3,)], (3,), ()), error="ValueError: no luck"))


def test_equal_diagrams_are_drawn_once_and_their_number_is_limited():
    same = ([(4,)], (4,), (VmapLevel(4, "expand_dims", (True,)),))
    assert to_html(recorded(same, same)).count("<p>vmap in ") == 1
    many = [([(n,)], (n,), (VmapLevel(n, "expand_dims", (True,)),)) for n in range(2, 20)]
    assert to_html(recorded(*many)).count("<p>vmap in ") == MAX_DIAGRAMS


def test_diagram_escapes_names_and_needs_no_styles():
    site = Site("pure", "<lambda>", "<cell>", 3, 4, cell=True, source="x")
    level = VmapLevel(4, "expand_dims", (True,))
    html = to_html(recorded(([(4,)], (4,), (level,)), site=site))
    seen = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: seen.append((tag, attributes))
    parser.feed(html.partition("</table>")[2])
    assert {tag for tag, _ in seen} == {"p", "table", "thead", "tbody", "tr", "th", "td", "code"}
    assert all(not attributes for _, attributes in seen)
    assert "vmap in &lt;lambda&gt;, line 3" in html
