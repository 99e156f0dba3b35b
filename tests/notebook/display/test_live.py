"""The live view: a widget shown while a cell runs; at the end, the host trace stands below."""

import pytest

WIDGET = "application/vnd.jupyter.widget-view+json"
MIME = "application/vnd.jupyter-jaxcb.recording.v1+json"
SETUP = """%%jax_callback pure --result x
def spin(x):
    return x"""
# Runs until the test has received the messages it waits for and creates the file.
CELL = """import os
f = jax.jit(lambda x: jax.lax.fori_loop(0, 50, lambda i, y: spin(y), x))
while not os.path.exists({path!r}):
    f(1.0).block_until_ready()
"""


class Seen:
    """Runs a cell and keeps its messages; creates `path` when `enough` is true for a message."""

    def __init__(self, kernel, path, code, enough, cell="cell-a"):
        self.messages = []

        def receive(message):
            self.messages.append((message["msg_type"], message["content"], message["buffers"]))
            if enough(*self.messages[-1]):
                path.touch()

        kernel.run_cell(code, cell, receive)

    def of(self, kind):
        return [content for name, content, _ in self.messages if name == kind]


def updated(kind, content, buffers):
    """Return whether a message updates the widget with the progress of the cell."""
    progress = content.get("data", {}).get("state", {}).get("progress", {}) if kind in (
        "comm_msg", "comm_open") else {}  # fmt: skip
    return progress.get("calls", 0) > 0 and kind == "comm_msg"


@pytest.fixture
def seen(kernel, tmp_path):
    kernel.run(SETUP)
    path = tmp_path / "go"
    return lambda enough, code=CELL, **options: Seen(
        kernel, path, code.format(path=str(path)), enough, **options
    )


def test_host_trace_is_displayed_anew_and_the_output_of_the_widget_is_emptied(seen):
    messages = seen(updated, CELL + "print('last line')\n'last value'")
    kinds = ("display_data", "update_display_data", "stream", "execute_result")
    live, printed, value, emptied, trace = (
        content for kind, content, _ in messages.messages if kind in kinds
    )
    assert set(live["data"]) == {WIDGET, "text/plain"}
    assert live["metadata"] == {"jupyter_jaxcb_live": True}
    assert (printed["text"], value["data"]["text/plain"]) == ("last line\n", "'last value'")
    assert emptied["transient"] == live["transient"]
    assert (emptied["data"], emptied["metadata"]) == ({}, {"jupyter_jaxcb_live": False})
    assert MIME in trace["data"] and MIME in trace["metadata"]


IS_OPEN = """any(type(widget).__name__ == "LiveWidget"
    for widget in [*__import__("ipywidgets").widgets.widget._instances.values()])"""


def test_widget_that_no_page_loaded_is_closed_some_time_after_the_cell(kernel, seen):
    """Not at its end: anywidget reports an error if the page is still loading the widget."""
    assert seen(updated).of("comm_close") == []
    assert kernel.run(IS_OPEN).value == "True"
    kernel.run("""import threading
for thread in threading.enumerate():
    if isinstance(thread, threading.Timer):
        thread.cancel()
        thread.function()""")
    assert kernel.run(IS_OPEN).value == "False"


def test_widget_that_a_page_has_loaded_is_closed_at_the_end_of_the_cell(kernel, seen):
    kernel.run("""def load():
    for widget in [*__import__("ipywidgets").widgets.widget._instances.values()]:
        if type(widget).__name__ == "LiveWidget":
            widget._handle_custom_msg("loaded", [])""")
    assert len(seen(updated, CELL + "load()").of("comm_close")) == 1
    assert kernel.run(IS_OPEN).value == "False"


def load(kernel, comm):
    """Do as a page that has loaded the widget."""
    data = {"method": "custom", "content": "loaded"}
    kernel.request("comm_msg", {"comm_id": comm, "data": data}, lambda message: None)


def test_progress_has_calls_sites_and_expected_calls(seen):
    messages = seen(updated)
    states = [c["data"].get("state", {}) for c in messages.of("comm_msg")]
    progress = [state["progress"] for state in states if "progress" in state][-1]
    (site,) = progress["sites"]
    assert (site["function"], site["where"]) == ("spin", "line 2")
    assert 0 < site["calls"] == progress["calls"]
    assert progress["expected"] == 50  # of the run under way, of many
    assert 0 < progress["calls"] - 50 * (progress["run"] - 1) <= 50


@pytest.mark.long
def test_calls_are_sent_as_columns_that_add_up(seen, unpacked):
    messages = seen(lambda kind, content, buffers: bool(buffers))
    sent = [
        unpacked({**content["data"]["content"], "raw": b"".join(map(bytes, buffers))})
        for kind, content, buffers in messages.messages
        if kind == "comm_msg" and content["data"].get("method") == "custom"
    ]
    (_, data) = (c["data"].get(MIME) for c in messages.of("display_data"))
    calls = [row for rows in sent for row in rows]
    assert 0 < len(calls) <= data["sites"][0]["calls"]
    assert {variant for _, _, _, variant, _, _ in calls} == {0}


def test_call_that_does_not_return_is_named(kernel, seen):
    kernel.run("%%jax_callback pure --result x\n"
               "def wait(x):\n"
               "    import os, threading\n"
               "    while not os.path.exists(path): threading.Event().wait(0.01)\n"
               "    return x")  # fmt: skip

    def running(kind, content, buffers):
        state = content.get("data", {}).get("state", {}) if kind.startswith("comm") else {}
        found.extend(state.get("progress", {}).get("running", []))
        return bool(found)

    found = []
    seen(running, "path = {path!r}\njax.jit(wait)(1.0).block_until_ready()")
    assert {(call["function"], call["where"], call["element"]) for call in found} == {
        ("wait", "line 2", -1)
    }
    assert all(call["elapsed_ns"] > 200_000_000 for call in found)


def test_calls_count_while_the_cell_waits_for_its_queue(kernel, seen):
    kernel.run("%%jax_callback debug --queued\n"
               "def log(x):\n"
               "    import os, threading\n"
               "    while not os.path.exists(path): threading.Event().wait(0.01)")  # fmt: skip

    def running(kind, content, buffers):
        state = content.get("data", {}).get("state", {}) if kind.startswith("comm") else {}
        found.extend(state.get("progress", {}).get("running", []))
        return bool(found)

    found = []
    messages = seen(running, "path = {path!r}\njax.jit(lambda x: log(x))(1.0);")
    assert {call["function"] for call in found} == {"log"}
    (_, trace) = messages.of("display_data")
    assert trace["data"][MIME]["sites"][0]["calls"] == 1
