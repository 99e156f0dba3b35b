"""Two processes of a jax.distributed run, with two devices each, gather their recordings."""

from pathlib import Path

import pytest

from ._spawn import run_in_processes

FLAVORS = ("pure", "io", "debug")
BOTH = pytest.mark.parametrize("process", [0, 1])


@pytest.fixture(scope="module")
def found():
    return run_in_processes("processes.py")


@pytest.mark.parametrize("flavor", FLAVORS)
@BOTH
def test_each_process_calls_for_the_shards_of_its_devices(found, flavor, process):
    """Each device has 2 of 8 numbers."""
    row = found[process]["programs"][f"{flavor}: shard_map"]
    first = 4 * process
    shards = [[first, first + 1], [first + 2, first + 3]]
    assert row["seen"] == shards
    assert row["parts"] == [[2 * x for x in shard] for shard in shards]
    assert row["local"]["expected"] == 2


@pytest.mark.parametrize("flavor", FLAVORS)
@BOTH
def test_every_process_gets_the_calls_of_all(found, flavor, process):
    row = found[process]["programs"][f"{flavor}: shard_map"]["gathered"]
    calls = sorted(row["calls"])
    assert [call[:2] for call in calls] == [[0, 0], [0, 1], [1, 2], [1, 3]]
    (devices,) = row["devices"]
    assert len(set(devices)) == 4
    assert [call[2] for call in calls] == devices
    assert all(thread.startswith(f"process {number} · ") for number, _, _, thread in calls)
    assert (row["status"], row["expected"]) == ("kept", 4)
    assert row["notes"] == ["2 calls in each of 2 processes"]


@pytest.mark.parametrize("flavor", FLAVORS)
@BOTH
def test_under_jit_one_process_calls_and_all_get_the_result(found, flavor, process):
    """JAX's own pure_callback returns zeros on all devices but the first."""
    row = found[process]["programs"][f"{flavor}: jit"]
    whole = list(range(8))
    assert row["seen"] == ([whole] if process == 0 else [])
    doubled = [2 * x for x in whole]
    for part in row["parts"]:
        assert part == doubled if len(part) == 8 else set(part) < set(doubled)
    gathered = row["gathered"]
    assert gathered["calls"][0][0] == 0 and len(gathered["calls"]) == 1
    assert (gathered["status"], gathered["expected"]) == ("kept", 1)
    assert gathered["notes"] == ["1 call in process 0, 0 calls in process 1"]


@pytest.mark.parametrize("flavor", FLAVORS)
def test_process_reports_that_another_one_makes_its_calls(found, flavor):
    local = [process["programs"][f"{flavor}: jit"]["local"] for process in found]
    assert [row["status"] for row in local] == ["kept", "not_run"]
    assert [row["expected"] for row in local] == [1, 0]
    assert local[1]["reason"] == "another process makes its calls on behalf of all"
    guide = Path(__file__).parents[3] / "docs" / "guide" / "several-processes.md"
    assert f"`not run: {local[1]['reason']}`" in guide.read_text("utf-8")


@pytest.mark.kept
@pytest.mark.parametrize(
    ("program", "caller"),
    [
        ("pure", 0),
        ("io", 0),
        ("debug", 0),
        ("pure, called in process 1", 1),
        *((f"{flavor}, on devices 3 and 1", 1) for flavor in FLAVORS),
    ],
)
def test_process_reports_that_another_one_makes_its_observed_calls(found, program, caller):
    """Of the devices 3 and 1, the first calls, which is in process 1."""
    rows = [process["observed"][program]["local"] for process in found]
    calls, none = rows[caller], rows[1 - caller]
    assert (calls["status"], calls["expected"], len(calls["calls"])) == ("kept", 1, 1)
    assert (none["status"], none["expected"], len(none["calls"])) == ("not_run", 0, 0)
    assert none["reason"] == "another process makes its calls on behalf of all"


@pytest.mark.kept
@BOTH
def test_zeros_of_another_process_are_reported_in_both(found, process):
    row = found[process]["observed"]["pure"]
    whole, zeros = [2 * x for x in range(8)], [0] * 8
    assert row["parts"] == ([zeros, zeros] if process else [whole, zeros])
    (text,) = row["warned"]
    assert text.startswith("a result of the jax pure callback double (processes.py:")
    assert found[process]["observed"]["io"]["warned"] == []  # the program computes with it


@BOTH
def test_different_statuses_are_reported_by_process(found, process):
    row = found[process]["different"]
    assert row["status"] == "kept" and [call[0] for call in row["calls"]] == [0, 0, 0]
    counts, status = row["notes"][:2]
    assert counts == "3 calls in process 0, 0 calls in process 1"
    assert status.startswith("unused in process 1: nothing uses its result")
    assert "unused in process 1" in row["text"]


@BOTH
def test_error_belongs_to_the_process_that_raised_it(found, process):
    calls = sorted(found[process]["failing"])
    assert calls == [[0, None], [1, "ValueError: no luck here"]]


def test_error_in_the_other_process_names_the_process_that_failed(found):
    """It must not show an earlier error of the other process."""
    failed, other = (process["failing for all"] for process in found)
    assert "ValueError: no luck for all" in failed
    assert "failed in process 0" in other and "no luck here" not in other


def test_all_processes_get_the_same_recording_with_every_transport(found):
    """In small pieces, and through JAX's public collectives if its key-value store is missing."""
    texts = {text for process in found for text in process["transports"].values()}
    assert len(texts) == 1


def test_nothing_is_left_in_the_store_of_the_run(found):
    """Process 0 deletes the entries after all other processes have read them."""
    assert found[0]["left in the store"] == []


def test_processes_have_different_pids(found):
    assert found[0]["processes"] == found[1]["processes"]
    assert len(set(found[0]["processes"])) == 2


def test_clocks_of_two_machines_are_compared(found):
    """The clock of process 1 is five seconds ahead."""
    assert found[0]["skewed"]["processes"] == found[1]["skewed"]["processes"]
    first, second = found[0]["skewed"]["processes"]
    assert (first["offset_ns"], first["error_ns"]) == (0, 0)
    assert 0 < second["error_ns"] < 1_000_000_000
    assert abs(second["offset_ns"] + 5_000_000_000) <= second["error_ns"]
    assert found[0]["skewed"]["clocks"].startswith("compared, within ")
    assert [process["skewed"]["moved_ns"] for process in found] == [0, second["offset_ns"]]


def test_timeout_names_the_missing_process(found):
    error = found[0]["absent"]["first"]
    assert error.startswith(
        "TimeoutError: cannot gather: process 1 of 2 did not call jaxcb.gather within 0.5 s. Every "
        "process of a jax.distributed run must call it"
    )


@BOTH
def test_late_process_joins_the_next_attempt(found, process):
    assert found[process]["absent"]["second"] == 2


def test_error_in_one_process_is_raised_in_the_others_at_once(found):
    other, wrong = (process["absent"]["third"] for process in found)
    assert wrong.startswith("TypeError: cannot gather str 'nonsense': it is not a recording. ")
    assert "process 1 gave up with \"TypeError: cannot gather str 'nonsense'" in other
    assert [process["absent"]["fourth"] for process in found] == [2, 2]


@BOTH
def test_gathering_a_gathered_recording_is_an_error(found, process):
    """Both processes raise it, possibly as the error with which the other gave up."""
    assert "is already gathered" in found[process]["absent"]["gathered twice"]


def test_process_that_computes_nothing_does_not_block_the_others():
    assert run_in_processes("idle.py") == [[0], [0]]


@BOTH
def test_calls_are_in_the_order_in_which_the_processes_took_turns(found, process):
    """After each turn, all processes wait for each other."""
    turns = found[process]["in turn"]
    assert turns["by end"] == turns["by start"] == [0, 1, 0, 1, 0, 1]
    assert turns["values"] == [["0"], ["1"], ["2"], ["3"], ["4"], ["5"]]
