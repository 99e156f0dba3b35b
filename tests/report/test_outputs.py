"""What `%jax_explain --matrix`, `%jax_check` and `%jax_callbacks` show: one markup, one look."""

import itertools
import re
from html import unescape
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import Spot, check_output, matrix_output, output, table
from jupyter_jaxcb.report.outputs._output import _style

BASE = Path(__file__).parents[2] / "labextension" / "style" / "base.css"
CLASS = re.compile(r'class="([^"]*)"')


@jaxcb.pure(result="x")
def double(x):
    return 2 * x


def wasteful(x):
    lost = double(x)  # noqa: F841
    return double(x + 1)


def matrix():
    return jaxcb.explain_matrix(wasteful)(jnp.float32(1))


def changing():
    """Return the check of a function that returns another number at each call."""
    count = itertools.count()
    return jaxcb.check(jaxcb.pure(lambda x: np.float32(next(count)), result="x"), 1.0)


def text_of(html):
    """Return what a reader without style sheets sees: hosts of notebooks remove the element."""
    return unescape(re.sub(r"<style>.*?</style>|<[^>]*>", "", html))


def test_matrix_names_a_line_for_each_spot_in_order():
    html, spots = matrix_output(matrix())
    named = re.findall(r'<span class="jaxcb-place">([^<]*)</span>', html)
    assert named == [f"test_outputs.py:{spot.line}" for spot in spots]
    assert [spot.source for spot in spots[:2]] == [
        "lost = double(x)  # noqa: F841",
        "return double(x + 1)",
    ]
    assert spots[2] == spots[0]  # the remark about the call that is missing


def test_matrix_gives_the_reason_and_what_to_do_for_each_missing_call():
    text = text_of(matrix_output(matrix()).html)
    assert "⚠ unused 0/1" in text
    assert "nothing uses its result" in text
    assert "↳ What to do: return or use the result" in text
    assert "refused: cannot differentiate double@" in text


def test_check_gives_what_to_do_below_each_finding():
    found = changing()
    text = text_of(check_output(found).html)
    assert found.findings
    for finding in found.findings:
        assert f"✕ {finding.kind}: {finding.what}↳ What to do: {finding.advice}" in text


def test_check_links_the_name_of_a_callback_whose_line_is_known():
    found = jaxcb.check(double, np.float32(1))
    spot = Spot("<cell>", 3, numbered=False)
    html, spots = check_output(found, {"double": spot}.get)
    assert '<b><span class="jaxcb-place">double</span></b> · pure' in html
    assert spots == (spot,)
    assert check_output(found).spots == ()
    assert 'class="jaxcb-place"' not in check_output(found).html


def test_names_and_values_are_text():
    found = jaxcb.check(jaxcb.pure(lambda x: x, result="x"), np.float32(1))
    assert "&lt;lambda&gt;" in found._repr_html_()
    assert table(["<b>"], [["<i>1</i>"]]).count("<b>") == 0


@pytest.mark.parametrize("shown", [matrix_output(matrix()).html, changing()._repr_html_()])
def test_every_class_has_a_rule_in_the_style_sheet(shown):
    found = {name for each in CLASS.findall(shown) for name in each.split()}
    assert "jaxcb-advice" in found
    assert {name for name in found if f".{name}" not in _style()} == set()


def test_palette_is_that_of_the_views():
    """Light, dark by the page's theme, and dark by the system, in this order in both files."""

    def palette(css, name):
        return re.findall(rf"{name}: *([^;]+);", css)

    base = BASE.read_text()
    own = (Path(jaxcb.__file__).parent / "report" / "outputs" / "report.css").read_text()
    for name in ("quiet", "accent", "ok", "bad-ink", "warn", "line"):
        theirs = palette(base, f"--jaxcb-{name}")[:3]
        assert palette(own, f"--jaxcb-{name}") == theirs, name
        assert len(theirs) == 3


def test_short_style_sheet_has_a_space_where_the_selectors_need_one():
    assert ".jaxcb-report.jaxcb-report :is(th,td){max-width:none;" in _style()
    assert ".jaxcb-report :is(.jaxcb-tone-ok,.jaxcb-tone-kept){" in _style()


def test_style_sheet_is_short_and_closed():
    html = output(["<p>hello</p>"]).html
    assert html.count("<style>") == html.count("</style>") == 1
    assert len(html) < 3_500
    assert "/*" not in html and "\n" not in html
