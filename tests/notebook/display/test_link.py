"""What JupyterLab's side panel and badges are reported over the comm."""

import zlib

import pytest

SETUP = """%%jax_callback pure --result x --vmap-method expand_dims
def double(x):
    return 2 * x"""


@pytest.fixture
def reported(kernel):
    """Runs a cell under a cell id; returns the last snapshot, or None."""

    def run(code, cell=None):
        recorded = []

        def receive(message):
            if message["msg_type"] == "comm_msg":
                recorded.append(message["content"])

        kernel.run_cell(code, cell, receive)
        assert {content["comm_id"] for content in recorded} <= {"jupyter_jaxcb"}
        return [content["data"] for content in recorded]

    return run


def double_of(snapshot):
    (callback,) = (c for c in snapshot["callbacks"] if c["name"] == "double")
    return callback


def test_registered_callback_is_reported_with_its_cell_and_line(reported):
    (snapshot,) = reported(SETUP, "cell-a")
    assert (snapshot["type"], snapshot["protocol"]) == ("snapshot", 1)
    callback = double_of(snapshot)
    assert callback | {"name": "double", "flavor": "pure", "cell": "cell-a", "line": 2} == callback
    assert (callback["options"], callback["calls"]) == ("vmap_method=expand_dims", 0)
    assert snapshot["cells"] == {"cell-a": zlib.crc32(SETUP.encode())}


def test_sites_are_reported_as_of_the_last_cell_and_callbacks_over_all(reported):
    reported(SETUP, "cell-a")
    code = "y = 1\nz = jax.vmap(double)(jnp.ones(5))"
    reported(code, "cell-b")
    (snapshot,) = reported(code + "\ndouble(y)", "cell-c")
    callback = double_of(snapshot)
    sites = [(s["cell"], s["line"], s["calls"], s["shapes"]) for s in snapshot["sites"]]
    assert sites == [
        ("cell-b", 2, 1, "(5,) → (5,)"),
        ("cell-c", 2, 1, "(5,) → (5,)"),
        ("cell-c", 3, 1, "() → ()"),
    ]
    assert callback["calls"] == 3 and callback["sites"] == [0, 1, 2]


def test_cell_run_again_with_another_text_has_its_new_sites_only(reported):
    reported(SETUP, "cell-a")
    reported("double(1.0)", "cell-b")
    (snapshot,) = reported("\n\ndouble(2.0)", "cell-b")
    assert [(s["cell"], s["line"]) for s in snapshot["sites"]] == [("cell-b", 3)]


def test_blank_lines_at_the_top_of_a_cell_count(reported):
    (snapshot,) = reported("%%jax_callback pure --result x\n\n \ndef double(x):\n    return x", "a")
    assert double_of(snapshot)["line"] == 4
    (snapshot,) = reported("\n  \n\ny = 1\ndouble(y)", "b")
    assert [s["line"] for s in snapshot["sites"] if s["cell"] == "b"] == [5]


def test_two_cells_with_one_text_are_reported_by_the_one_that_ran_last(reported):
    reported(SETUP, "cell-a")
    reported("double(1.0)", "cell-b")
    (snapshot,) = reported("double(1.0)", "cell-c")
    assert [s["cell"] for s in snapshot["sites"]] == ["cell-c"]


def test_elided_callback_is_reported_with_reason_and_advice(reported):
    reported(SETUP, "cell-a")
    (snapshot,) = reported("jax.jit(lambda x: (double(x), x)[1])(1.0)", "cell-b")
    (site,) = snapshot["sites"]
    assert (site["status"], site["elided"], site["cell"]) == ("unused", 1, "cell-b")
    assert "nothing uses" in site["reason"] and site["advice"]


def test_cell_that_changes_nothing_sends_nothing(reported):
    reported(SETUP, "cell-a")
    reported("1 + 1", "cell-b")
    assert reported("1 + 1", "cell-b") == []


def test_unloading_is_reported(reported):
    assert reported("%unload_ext jupyter_jaxcb")[-1]["type"] == "unloaded"


def results(kernel, data):
    """What the kernel returns to a message of a front end."""
    found = []

    def receive(message):
        if message["msg_type"] == "comm_msg":
            found.append(message)

    kernel.ask("comm_msg", {"comm_id": "jupyter_jaxcb", "data": data}, receive)
    return found


def test_hello_gets_a_snapshot(kernel, reported):
    reported(SETUP, "cell-a")
    (message,) = results(kernel, {"type": "hello", "protocol": 1})
    assert double_of(message["content"]["data"])["calls"] == 0


def test_recording_is_sent_whole_with_its_values(kernel, unpacked):
    kernel.run(SETUP)
    ran = kernel.run("jax.lax.fori_loop(0, 30, lambda i, y: double(y), 1.0).block_until_ready();")
    ((_, metadata),) = ran.traces
    (measured,) = metadata.values()
    (message,) = results(kernel, {"type": "recording", "id": measured["id"]})
    data = message["content"]["data"]
    rows = unpacked({**data, "raw": bytes(message["buffers"][0])})
    assert len(rows) == data["facts"]["sites"][0]["calls"] == 30
    (first, *_) = data["facts"]["sites"][0]["sample_values"]
    assert (first[1], first[2]) == (["1"], ["2"])


def test_request_for_a_recording_that_is_gone_gets_no_facts(kernel):
    (message,) = results(kernel, {"type": "recording", "id": "nothing"})
    assert message["content"]["data"]["facts"] is None


@pytest.mark.parametrize("data", [{}, {"type": "from the future"}, {"type": ["x"], "id": {}}])
def test_message_of_another_version_breaks_nothing(kernel, data):
    assert results(kernel, data) == []
    assert kernel.run("1").text == ""


def test_helper_that_two_lines_call_is_two_rows_until_their_cell_changes(reported):
    reported(SETUP + "\n", "cell-a")
    reported("helper = lambda x: double(x)", "cell-b")
    (snapshot,) = reported("y = helper(1.0)\nz = helper(2.0)", "cell-c")
    assert [(s["cell"], s["line"], s["where"]) for s in snapshot["sites"]] == [
        ("cell-b", 1, "line 1 (from line 1, another cell)"),
        ("cell-b", 1, "line 1 (from line 2, another cell)"),
    ]
    assert double_of(snapshot)["calls"] == 2
    (snapshot,) = reported("y = helper(3.0)", "cell-c")
    assert [(s["where"], s["calls"]) for s in snapshot["sites"]] == [("line 1", 1)]
    assert double_of(snapshot)["calls"] == 3
