"""The comm that keeps JupyterLab's side panel and badges up to date."""

import re
import zlib

import pytest

from jupyter_jaxcb.report import SCHEMA
from tests._site_schema import check_beside, check_site

SETUP = """%%jax_callback pure --result x --vmap-method expand_dims
def double(x):
    return 2 * x"""


@pytest.fixture
def sent(kernel):
    """Return a function that runs a cell and returns the data of the comm messages it sends."""

    def run(code, cell=None):
        messages = []

        def receive(message):
            if message["msg_type"] == "comm_msg":
                messages.append(message["content"])

        kernel.run_cell(code, cell, receive)
        assert {content["comm_id"] for content in messages} <= {"jupyter_jaxcb"}
        return [content["data"] for content in messages]

    return run


def double_of(snapshot):
    (callback,) = (c for c in snapshot["callbacks"] if c["name"] == "double")
    return callback


@pytest.mark.long
def test_snapshot_has_the_cell_and_line_of_a_registered_callback(sent):
    (snapshot,) = sent(SETUP, "cell-a")
    assert (snapshot["type"], snapshot["schema"]) == ("snapshot", SCHEMA)
    callback = double_of(snapshot)
    assert callback | {"name": "double", "flavor": "pure", "cell": "cell-a", "line": 2} == callback
    assert (callback["options"], callback["calls"]) == ("vmap_method=expand_dims", 0)
    assert snapshot["cells"] == {"cell-a": zlib.crc32(SETUP.encode())}


def test_snapshot_has_the_sites_of_all_cells_and_their_total_calls(sent):
    sent(SETUP, "cell-a")
    code = "y = 1\nz = jax.vmap(double)(jnp.ones(5))"
    sent(code, "cell-b")
    (snapshot,) = sent(code + "\ndouble(y)", "cell-c")
    callback = double_of(snapshot)
    check_beside("CallbackView", callback)
    for site in snapshot["sites"]:
        check_site(site)
    sites = [
        (s["cell_id"], s["cell_line"], s["calls"], s["shapes"][0]["shapes"])
        for s in snapshot["sites"]
    ]
    assert sites == [
        ("cell-b", 2, 1, "(5,) → (5,)"),
        ("cell-c", 2, 1, "(5,) → (5,)"),
        ("cell-c", 3, 1, "() → ()"),
    ]
    assert callback["calls"] == 3 and callback["sites"] == [0, 1, 2]


def test_edited_cell_that_runs_again_has_only_its_new_sites(sent):
    sent(SETUP, "cell-a")
    sent("double(1.0)", "cell-b")
    (snapshot,) = sent("\n\ndouble(2.0)", "cell-b")
    assert [(s["cell_id"], s["cell_line"]) for s in snapshot["sites"]] == [("cell-b", 3)]


def replies(kernel, data):
    """Send `data` as a front end does, and return the comm messages the kernel replies with."""
    messages = []

    def receive(message):
        if message["msg_type"] == "comm_msg":
            messages.append(message)

    kernel.request("comm_msg", {"comm_id": "jupyter_jaxcb", "data": data}, receive)
    return messages


def test_hello_gets_a_snapshot(kernel, sent):
    sent(SETUP, "cell-a")
    (message,) = replies(kernel, {"type": "hello", "schema": SCHEMA})
    assert double_of(message["content"]["data"])["calls"] == 0


def test_requested_recording_is_sent_with_its_id_and_sample_values(kernel, unpacked):
    kernel.run(SETUP)
    ran = kernel.run("jax.lax.fori_loop(0, 30, lambda i, y: double(y), 1.0).block_until_ready();")
    ((_, metadata),) = ran.traces
    (measured,) = metadata.values()
    (message,) = replies(kernel, {"type": "recording", "id": measured["id"]})
    data = message["content"]["data"]
    assert data["measured"]["id"] == measured["id"]
    rows = unpacked({**data, "raw": bytes(message["buffers"][0])})
    assert len(rows) == data["facts"]["sites"][0]["calls"] == 30
    (first, *_) = data["facts"]["sites"][0]["sample_values"]
    assert first == ["1 → 2", False]


def test_requested_file_is_what_save_writes_and_empty_if_the_recording_is_gone(kernel, tmp_path):
    kernel.run(SETUP)
    ran = kernel.run("%%jax_record run\ny = double(double(1.0))")
    ((_, metadata),) = ran.traces
    (measured,) = metadata.values()

    def file(**request):
        (message,) = replies(kernel, {"type": "file", **request})
        data = message["content"]["data"]
        assert {name: data[name] for name in request} == request
        return b"".join(map(bytes, message["buffers"]))

    for suffix in (".csv", ".perfetto.json"):
        path = tmp_path / f"run{suffix}"
        kernel.run(f"run.save({str(path)!r})")
        assert file(id=measured["id"], suffix=suffix) == path.read_bytes() != b""
        assert file(id="gone", suffix=suffix) == b""
    assert file(id=measured["id"], suffix=".exe") == b""


def test_helper_called_on_two_lines_has_two_rows_until_their_cell_changes(sent):
    sent(SETUP + "\n", "cell-a")
    sent("helper = lambda x: double(x)", "cell-b")
    (snapshot,) = sent("y = helper(1.0)\nz = helper(2.0)", "cell-c")
    assert [(s["cell_id"], s["cell_line"]) for s in snapshot["sites"]] == [("cell-b", 1)] * 2
    found = [re.fullmatch(r"\[(\d+)\] line 1 \(from \[(\d+)\] line (.)\)", s["where"])
             for s in snapshot["sites"]]  # fmt: skip
    assert [int(at[2]) - int(at[1]) for at in found] == [1, 1]  # the caller's cell ran after it
    assert [at[3] for at in found] == ["1", "2"]
    assert double_of(snapshot)["calls"] == 2
    (snapshot,) = sent("y = helper(3.0)", "cell-c")
    (site,) = snapshot["sites"]
    assert (site["where"].partition("] ")[2], site["calls"]) == ("line 1", 1)
    assert double_of(snapshot)["calls"] == 1


def test_totals_of_a_callback_are_the_sums_of_its_sites_after_a_cell_ran_again(sent):
    sent(SETUP, "cell-a")
    code = "y = jax.jit(lambda x: (double(x), double(x + 1))[1])(1.0)"
    sent(code, "cell-b")
    (snapshot,) = sent(code + " + 1", "cell-b")
    callback, sites = double_of(snapshot), snapshot["sites"]
    assert len(sites) == 2
    for fact in ("calls", "elided", "host_ns"):
        assert callback[fact] == sum(site[fact] for site in sites)
    assert (callback["calls"], callback["elided"]) == (1, 1)
