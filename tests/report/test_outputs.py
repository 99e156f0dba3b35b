"""What `%jax_explain --matrix`, `%jax_check` and `%jax_callbacks` show: one markup, one look."""

import itertools
import re
from html import unescape

import jax.numpy as jnp
import numpy as np

import jupyter_jaxcb as jaxcb
from tests.interface import matrix_output


@jaxcb.pure(result="x")
def double(x):
    return 2 * x


def wasteful(x):
    lost = double(x)  # noqa: F841
    return double(x + 1)


def text_of(html):
    """Return what a reader without style sheets sees: hosts of notebooks remove the element."""
    return unescape(re.sub(r"<style>.*?</style>|<[^>]*>", "", html))


def test_matrix_gives_the_reason_and_what_to_do_for_each_missing_call():
    html, spots = matrix_output(jaxcb.explain_matrix(wasteful)(jnp.float32(1)))
    assert html.count('class="jaxcb-place"') == len(spots)  # each is a link
    text = text_of(html)
    assert "⚠ unused 0/1" in text
    assert "nothing uses its result" in text
    assert "↳ What to do: return or use the result" in text
    assert "refused: cannot differentiate double@" in text


def test_check_gives_what_to_do_below_each_finding():
    count = itertools.count()
    found = jaxcb.check(jaxcb.pure(lambda x: np.float32(next(count)), result="x"), 1.0)
    text = text_of(found._repr_html_())
    assert found.findings
    for finding in found.findings:
        assert f"✕ {finding.kind}: {finding.what}↳ What to do: {finding.advice}" in text
