"""What is shown passes two doors: `visible` for text, and `element` for HTML."""

import pytest

from tests.interface import Html, between, element, html, on_one_line, spreadsheet_cell, visible

pytestmark = pytest.mark.kept


@pytest.mark.parametrize(
    "text",
    [
        "naïve Größe, 測定, Ψ ∈ ℝⁿ, мера, שלום, سلام, हिन्दी",
        "👩‍🔬 ❤️ 👍🏽 🇨🇭 №½ → ✓",
        "می‌خواهم",
        "x = '\\n' # tab\t end",
        "two\nlines",
    ],
)
def test_ordinary_text_stays(text):
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("a\rb\x00\x85\x9b", r"a\rb\x00\x85\x9b"),
        ("\u202eabc\u2069", r"\u202eabc\u2069"),
        ("is\u200badmin\u2060\ufeff", r"is\u200badmin\u2060\ufeff"),
        ("pay\u200dpal\u200c", r"pay\u200dpal\u200c"),
        ("\ud800\U000e0041", r"\ud800\U000e0041"),
        ("a\u2028b", r"a\u2028b"),
    ],
)
def test_what_a_terminal_obeys_and_what_nobody_sees_is_escaped(text, shown):
    assert visible(text) == shown


def test_name_of_two_lines_takes_one():
    assert on_one_line("a\n  b\tc") == r"a\n  b\tc"


def test_strings_become_text_and_values_of_attributes():
    text = """<b>'"&\x1b"""
    shown = r"&lt;b&gt;&#x27;&quot;&amp;\x1b"
    assert element("p", text, title=text) == f'<p title="{shown}">{shown}</p>'
    assert html(text, 3, None, "") == f"{shown}3"
    assert between(" & ", [text, "", "x"]) == f"{shown} &amp; x"
    assert element("tr", element("td", text)) == f"<tr><td>{shown}</td></tr>"


def test_html_that_was_changed_as_a_string_is_text_again():
    """So nothing is HTML by accident."""
    made = element("b", "x")
    assert isinstance(made, Html) and element("p", made) == "<p><b>x</b></p>"
    for changed in (made.replace("x", "y"), f"{made}", made + "", made[0:]):
        assert element("p", changed).startswith("<p>&lt;b&gt;")


def test_attributes_are_named_like_arguments():
    assert element("i", class_="a", aria_label="b") == '<i class="a" aria-label="b"></i>'
    assert element("i", open=True, hidden=False, id=None) == "<i open></i>"
    assert element("br") + element("path", d="M0") == '<br><path d="M0"/>'
    assert element("td", "a\xa0b") == "<td>a&nbsp;b</td>"


@pytest.mark.parametrize("text", ["</script>", "</SCRIPT >", "<!-- x", "</style"])
def test_script_that_would_end_early_is_refused(text):
    assert element("script", "a < b && '</p>'") == "<script>a < b && '</p>'</script>"
    with pytest.raises(ValueError, match="cannot contain"):
        element("script", text)


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "\tx", "\rx", "\uff1d1", "\uff0bx"])
def test_text_that_a_spreadsheet_would_run_gets_an_apostrophe_and_numbers_do_not(text):
    assert spreadsheet_cell(text) == f"'{text}"
    assert spreadsheet_cell(-1) == -1 and spreadsheet_cell(f"x{text}") == f"x{text}"
