"""The last runs of a cell, which its host trace asks the kernel for."""

import pytest

from jupyter_jaxcb.notebook.display import History
from jupyter_jaxcb.notebook.display._history import MOST_CODE, MOST_RUNS
from jupyter_jaxcb.recording import Recorder
from jupyter_jaxcb.report import MIME_TYPE

from .test_link import replies

SETUP = """%%jax_callback pure --result x
def double(x):
    return 2 * x"""


@pytest.fixture
def runs_of(kernel):
    """Return a function that runs a cell and returns what a view of its host trace gets."""

    def run(code, cell):
        ((_, metadata),) = kernel.run(code, cell).traces
        return request(kernel, metadata[MIME_TYPE]["id"])

    kernel.run(SETUP)
    return run


def request(kernel, name):
    (message,) = replies(kernel, {"type": "recording", "id": name})
    return message["content"]["data"]["runs"]


def figures(runs):
    """Return prompt numbers, and the sites of each run by function: their calls."""
    names = [site["function"] for site in runs["sites"]]
    return [{names[place]: calls for place, _, calls, *_ in run["sites"]} for run in runs["runs"]]


def test_runs_of_a_cell_are_sent_with_their_figures(runs_of):
    runs_of("double(1.0);", "cell-a")
    runs_of("jax.vmap(double)(jnp.ones(3));", "cell-b")
    runs = runs_of("double(1.0); double(2.0);", "cell-a")
    assert [len(run["sites"]) for run in runs["runs"]] == [1, 2]
    first, second = runs["runs"]
    assert first["number"] < second["number"] and first["id"] != second["id"]
    assert runs["sites"][0]["source"] == "double(1.0);"
    place, consequence, calls, host_ns, p95_ns = first["sites"][0]
    assert (place, consequence, calls) == (0, "kept", 1)
    assert host_ns == p95_ns > 0


def test_history_outlives_the_recordings_that_the_kernel_keeps(kernel, runs_of):
    first = runs_of("double(1.0);", "cell-a")["runs"][-1]["id"]
    for _ in range(9):
        runs_of("double(1.0);", "cell-b")
    (message,) = replies(kernel, {"type": "recording", "id": first})
    data = message["content"]["data"]
    assert data["facts"] is None
    assert figures(data["runs"]) == [{"double": 1}]


def test_only_the_last_runs_of_a_cell_and_few_cells_are_kept():
    history, nothing = History(), Recorder().freeze()
    for number in range(MOST_RUNS + 5):
        history.add("cell-a", 0, f"run {number}", number, "", nothing, [])
    assert history.to_json("run 4") is None
    runs = history.to_json(f"run {MOST_RUNS + 4}")["runs"]
    assert [run["number"] for run in runs] == list(range(5, MOST_RUNS + 5))
    for number in range(1_000):
        history.add(f"cell {number}", 0, f"other {number}", number, "", nothing, [])
    assert history.to_json("other 0") is None
    assert history.to_json("other 999") is not None


def test_runs_have_the_code_of_the_cell_unless_it_is_long(runs_of):
    codes = ["double(1.0);", "double(1.0);", "double(2.0);  # \u202e</script>"]
    for code in [*codes, f"double(1.0);{' ' * MOST_CODE}"]:
        runs = runs_of(code, "cell-c")
    assert runs["codes"] == codes[1:]
    assert [run["code"] for run in runs["runs"]] == [0, 0, 1, None]
