"""Untrusted outputs and messages never run code; one sentence says what is wrong with them."""

import base64
import functools
import json
import zlib

import pytest
from playwright.sync_api import expect

from tests.interface import MIME_TYPE

from ._outputs import open_everything, output, paths, poisoned, recording, replaced

POISON = (
    "<img src=x onerror='window.hacked=1'><script>window.hacked=2</script>"
    '"><svg onload=window.hacked=3><a href="javascript:window.hacked=4">[x](javascript:alert(1))'
)
# Elements that only injected markup could add to our views.
FOREIGN = (
    "img, script, iframe, object, embed, style, link, form, a, base, meta, video, b, i, "
    "svg:not([class^=jaxcb-])"
)
OURS = ".jaxcb-view, .jaxcb-panel, .jaxcb-badge, .jaxcb-tip"
# Renders each output as a cell would, expands it, and returns its texts.
RENDER = """async ([type, outputs]) => {
  const { rendermime } = window.jupyterapp.shell.currentWidget.content;
  const texts = [];
  for (const { data, metadata } of JSON.parse(outputs)) {
    const widget = rendermime.createRenderer(type);
    const options = { data: { [type]: data }, metadata: { [type]: metadata }, trusted: true };
    document.body.append(widget.node);
    await widget.renderModel(rendermime.createModel(options));
    widget.node.querySelector('.jaxcb-disclosure')?.click();
    const calls = widget.node.querySelectorAll('[role=tab]')[1];
    if (calls?.checkVisibility()) {
      calls.click();
      for (let n = 0; widget.node.querySelector('.jaxcb-calls [role=status]:only-child'); n++) {
        await new Promise(requestAnimationFrame);
      }
    }
    const all = css => [...widget.node.querySelectorAll(css)].map(node => node.textContent);
    texts.push({
      messages: all('.jaxcb-message, .jaxcb-bad[role=alert]'),
      warnings: all('.jaxcb-warning'),
      views: all('.jaxcb-disclosure').length,
      sites: all('.jaxcb-site').length
    });
    widget.dispose();
    widget.node.remove();
  }
  return texts;
}"""

# Over the notebook: as an output, JupyterLab would save it, and it may replace the nodes of cells.
MANY_SITES = """async ([type, facts]) => {
  const panel = window.jupyterapp.shell.currentWidget;
  const widget = panel.content.rendermime.createRenderer(type);
  const data = { [type]: { ...facts, sites: Array(100_000).fill(facts.sites[0]) } };
  await widget.renderModel(panel.content.rendermime.createModel({ data }));
  widget.node.style = 'position: absolute; inset: 0; z-index: 100; overflow: auto';
  panel.node.append(widget.node);
}"""


@pytest.fixture
def dialogs(page):
    """The messages of all dialogs that the page opened."""
    messages = []

    def accept(dialog):
        if dialog.type != "beforeunload":
            messages.append(dialog.message)
        dialog.accept()

    page.on("dialog", accept)
    yield messages
    page.remove_listener("dialog", accept)


def check_harmless(page, dialogs):
    """Check that no code ran, no markup was injected, and the page still responds."""
    foreign = f":is({OURS}) :is({FOREIGN})"
    assert page.evaluate(
        "foreign => [...document.querySelectorAll(foreign)].map(node => node.outerHTML)", foreign
    ) == []  # fmt: skip
    listening = page.evaluate(
        "ours => [...document.querySelectorAll(`:is(${ours}) *`)].flatMap(node =>"
        " node.getAttributeNames().filter(name => /^on|^href$|^src/.test(name)))",
        OURS,
    )
    assert listening == []
    assert page.evaluate("() => new Promise(done => requestAnimationFrame(() => done(1)))") == 1
    assert page.evaluate("() => window.hacked") is None
    assert dialogs == []


def rendered(book, outputs):
    """Render outputs in one page of JupyterLab; return the messages and counts of each."""
    bundles = [{"data": facts, "metadata": measured} for facts, measured in outputs]
    return book.page.evaluate(RENDER, [MIME_TYPE, json.dumps(bundles)])


def message_of(book, facts, measured):
    """Return the message shown instead of an output that cannot be shown."""
    [found] = rendered(book, [(facts, measured)])
    [message] = found["messages"] + found["warnings"]
    return message


def calls(rows, raw, unit_ns=100):
    """Return a recording with these saved calls."""
    facts, measured = recording()
    text = base64.b64encode(zlib.compress(raw)).decode() if isinstance(raw, bytes) else raw
    return facts, measured | {"calls": {"rows": rows, "unit_ns": unit_ns, "zlib": text}}


@pytest.mark.long
def test_no_string_of_a_recording_becomes_markup(notebook, page, dialogs):
    facts, measured = recording()
    facts = poisoned(facts, POISON)
    facts["sites"][2]["errors"] = [f"{POISON}\n" * 9]  # long errors are collapsed
    measured = poisoned(measured, POISON) | {"out_of_order": [POISON]}
    notebook("None", outputs=[[output(facts, measured)]])
    view = page.locator(".jaxcb-view")
    open_everything(view)
    view.get_by_role("grid").press("End")
    expect(view.locator(".jaxcb-timeline-selected")).to_contain_text("<script>window.hacked=2")
    view.locator(".jaxcb-timeline-canvas").hover()
    check_harmless(page, dialogs)
    for css in (
        ".jaxcb-summary",
        ".jaxcb-site-where",
        ".jaxcb-site-source",
        ".jaxcb-site-reason",
        ".jaxcb-site-note",
        ".jaxcb-site-error pre",
        ".jaxcb-site-sample_values",
        ".jaxcb-site-context",
        ".jaxcb-warning",
        ".jaxcb-footer li",
        ".jaxcb-footer p >> nth=-1",
        "select >> nth=1",
        ".jaxcb-distribution-site",
    ):
        expect(view.locator(css).first).to_contain_text("<script>window.hacked=2")


@pytest.mark.long
def test_values_of_wrong_types_give_a_view_or_one_message(notebook, page, dialogs):
    facts, measured = recording()
    wrong = [None, -1, 1e18, POISON, [[]], {"length": 1e9}]
    outputs = [(replaced(facts, path, value), measured) for path in paths(facts) for value in wrong]
    outputs += [
        (facts, replaced(measured, path, value)) for path in paths(measured) for value in wrong
    ]
    results = rendered(notebook("None"), outputs)
    assert len(results) == len(outputs) > 1_000
    for given, found in zip(outputs, results, strict=True):
        # Of a view, one says what is damaged, and one may say why the calls cannot be shown.
        assert (found["views"], len(found["messages"])) in [(1, 0), (0, 1), (1, 1), (1, 2)], given
        assert len(found["warnings"]) <= 1, given
    check_harmless(page, dialogs)


@pytest.mark.long
def test_message_names_the_problem(notebook, page, dialogs):
    book = notebook("None")
    facts, measured = recording()
    for changed, message in [
        (None, "the recording is null, not an object."),
        ([], "the recording is a list, not an object."),
        ({}, "schema is missing."),
        ({**facts, "schema": 2}, "it was made by a newer version of jupyter_jaxcb (schema 2; this "
         "one shows schema 1). Update jupyter_jaxcb where JupyterLab runs."),
    ]:  # fmt: skip
        assert message_of(book, changed, measured) == f"✕ cannot show this host trace: {message}"
    check_harmless(page, dialogs)


@pytest.mark.long
def test_message_names_what_is_damaged_above_the_rest(notebook, page, dialogs):
    book = notebook("None")
    facts, measured = recording()
    sites = facts["sites"]
    calls = ("sites", 1, "shapes", 0, "calls")
    for changed, message, shown in [
        ({**facts, "sites": {"length": 3}}, "sites is an object, not a list.", 0),
        ({**facts, "sites": [*sites, None]}, "sites[3] is null, not an object.", 4),
        (replaced(facts, calls, 1e18), "sites[1].shapes[0].calls is "
         "1000000000000000000, not a whole number of at least 0.", 3),
        (replaced(facts, calls, "NaN"), "sites[1].shapes[0].calls is "
         '"NaN", not a whole number of at least 0.', 3),
        (replaced(facts, ("full",), 7), "full is 7, not text.", 3),
    ]:  # fmt: skip
        [found] = rendered(book, [(changed, measured)])
        assert found["messages"] == [f"⚠ This output is damaged: {message}"]
        assert (found["views"], found["sites"]) == (1, shown)
    check_harmless(page, dialogs)


@pytest.mark.long
def test_invalid_saved_calls_give_one_message(notebook, page, dialogs):
    book = notebook("None")
    bomb = bytes(50_000_000)
    for (facts, measured), message in [
        (calls(10**9, b""), "The saved calls have 1000000000 rows, not 0 to 2,000,000."),
        (calls(6, bomb), "The saved calls have more than the 108 bytes of their rows."),
        (calls(6, b"x"), "The saved calls have 1 bytes, not the 108 of their rows."),
        (calls(6, "%%%"), "The saved calls are not valid base64."),
        (calls(6, "AAAA"), "The saved calls are not valid zlib data."),
        (calls(6, bytes(108), 2 * 10**9), "The saved calls have an invalid time unit: 2000000000."),
    ]:
        assert message_of(book, facts, measured) == f"✕ cannot show the calls: {message}"
    facts, measured = calls(6, bytes(108))
    measured["calls"]["crossings"] = "%%%"
    assert message_of(book, facts, measured) == (
        "⚠ cannot show crossings: The saved crossings are not valid base64."
    )
    [found] = rendered(book, [calls(-1, "")])
    assert "measured.calls.rows is -1, not a whole number of at least 0." in found["messages"][0]
    check_harmless(page, dialogs)


@pytest.mark.long
def test_metadata_may_be_missing_and_integers_may_be_huge(notebook, page, dialogs):
    facts, measured = recording()
    for path in list(paths(facts["sites"])):
        value = functools.reduce(lambda inner, key: inner[key], path, facts["sites"])
        if type(value) is int and value >= 0:
            facts["sites"] = replaced(facts["sites"], path, 2**53 - 1)
    book = notebook("None")
    for metadata in (None, {}, measured):
        [found] = rendered(book, [(facts, metadata)])
        assert found == {"messages": [], "views": 1, "sites": 3, "warnings": found["warnings"]}
    check_harmless(page, dialogs)


@pytest.mark.long
def test_a_hundred_of_a_hundred_thousand_sites_are_listed(notebook, page, dialogs):
    facts, _ = recording()
    notebook("None")
    page.evaluate(MANY_SITES, [MIME_TYPE, facts])
    view = page.locator(".jaxcb-view")
    view.locator(".jaxcb-disclosure").click()
    expect(view.locator(".jaxcb-site")).to_have_count(100)
    expect(view.locator(".jaxcb-warning")).to_have_text("⚠ 98,000 more call sites are not listed")
    view.get_by_role("button", name="show 100 more of 1900 sites").click()
    expect(view.locator(".jaxcb-site")).to_have_count(200)
    check_harmless(page, dialogs)


@pytest.mark.long
def test_direction_override_does_not_reorder_the_headline(notebook, page):
    facts, measured = recording()
    facts["headline"] = [["error", f"\u202emodel {n} raised"] for n in range(3)]
    notebook("None", outputs=[[output(facts, measured)]])
    words = page.locator(".jaxcb-summary-part")
    expect(words.first).to_be_visible()
    lefts = words.evaluate_all("nodes => nodes.map(node => node.getBoundingClientRect().left)")
    assert len(lefts) > 2 and lefts == sorted(lefts)


@pytest.mark.long
def test_keys_named_like_prototypes_are_ordinary_keys(notebook, page, dialogs):
    facts, measured = recording()
    odd = {"__proto__": facts | {"hacked": 1}, "constructor": {"prototype": {"hacked": 1}}}
    measured["environment"] = {"__proto__": "odd", "constructor": "odd"}
    outputs = [output(odd, measured), output(facts | odd, measured | {"__proto__": {"id": 1}})]
    notebook("None", outputs=[outputs])
    # JupyterLab decides whether the first output is a view or a message.
    expect(page.locator(":is(.jaxcb-disclosure, .jaxcb-message)")).to_have_count(2)
    view = page.locator(".jaxcb-view").nth(1)
    open_everything(view)
    expect(view.locator(".jaxcb-footer")).to_contain_text("constructor odd")
    assert page.evaluate("() => [{}.hacked, Object.hacked, [].hacked]") == [None] * 3
    check_harmless(page, dialogs)


FAKE = """
from comm import create_comm, get_comm_manager
fake = create_comm(target_name="jupyter_jaxcb", comm_id="jupyter_jaxcb", primary=False)
get_comm_manager().register_comm(fake)
cell = get_ipython().get_parent()["metadata"]["cellId"]
"""
SNAPSHOT = f"""
poison = {POISON!r}
def snapshot(**changes):
    rows = [[poison, [["batched", 4]], [], poison, poison]]
    shapes = dict(shapes=poison, arrays=poison, sizes=poison, methods=poison, vmaps=poison,
                  elements=poison, placed=poison, count=poison, calls=1,
                  diagram=dict(vmaps=[poison], receives=poison, rows=rows, results=0))
    site = dict(function=poison, flavor=poison, cell=True, line=2, column=0, where=poison,
                source="", status="unused", consequence="unused", reason=poison, advice=poison,
                calls=1, crossings=1, expected=None, written=None, elided=1, notes=[poison],
                errors=[poison], arguments=poison, shapes=[shapes], host_ns=5, variants_ns=[5],
                cell_id=cell, cell_line=2, around=[poison], stack=[poison], sample_rows=[])
    callback = dict(name=poison, flavor=poison, options=poison, cell=cell, line=3, where=poison,
                    sites=[0], calls=1, elided=0, errors=1, host_ns=5)
    value = dict(cell=cell, line=3, source=poison, name=poison, text=poison, bad=True, first=False,
                 details=[poison])
    return dict(schema=1, type="snapshot", version="0.1", running=False, cells={{}},
                callbacks=[callback], sites=[site], values=[value], more_sites=0) | changes
"""
SAME = "Install the same version in both environments."
UNREADABLE = "which sent what this JupyterLab extension cannot read:"


@pytest.mark.long
def test_panel_explains_why_it_cannot_read_a_message(notebook, page, dialogs):
    sent = {
        'schema=2, type="snapshot", version="9.0"': " 9.0, "
        f"{UNREADABLE} the messages have schema 2, not schema 1. {SAME}",
        "type=5, version=poison": f", {UNREADABLE} the messages have an unknown schema, not schema "
        f"1. {SAME}",
        "**snapshot(sites=7)": f" 0.1, {UNREADABLE} sites is 7, not a list. {SAME}",
        '**snapshot(type="x")': f' 0.1, {UNREADABLE} type is "x", not one of snapshot, unloaded. '
        f"{SAME}",
        'schema=1, type="recording", id=5': f", {UNREADABLE} id is 5, not text. {SAME}",
    }
    cells = [f"fake.send(dict({data}))" for data in sent]
    book = notebook(FAKE + SNAPSHOT, *cells, "fake.send(snapshot())")
    book.command("jupyter-jaxcb:open-panel")
    book.run_and_wait(0)
    empty = page.locator(".jaxcb-panel-empty")
    for number, words in enumerate(sent.values(), 1):
        book.run(number)
        expect(empty).to_have_text(f"This kernel has jupyter_jaxcb{words}")
    book.run_and_wait(len(sent) + 1)
    expect(page.locator(".jaxcb-callback-name")).to_have_text(POISON)
    expect(page.locator(".jaxcb-callsite-notes")).to_contain_text("<script>window.hacked=2")
    badge = page.locator(".jaxcb-badge-note").first
    expect(badge).to_be_visible()
    badge.hover()
    check_harmless(page, dialogs)
