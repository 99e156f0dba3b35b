"""Two processes of a jax.distributed run, with two devices each, gather their recordings."""

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
    """Of 8 numbers a device has 2."""
    row = found[process]["programs"][f"{flavor}: shard_map"]
    first = 4 * process
    shards = [[first, first + 1], [first + 2, first + 3]]
    assert row["seen"] == shards
    assert row["parts"] == [[2 * x for x in shard] for shard in shards]
    assert row["own"]["expected"] == 2


@pytest.mark.parametrize("flavor", FLAVORS)
@BOTH
def test_calls_of_all_processes_are_there_in_each(found, flavor, process):
    row = found[process]["programs"][f"{flavor}: shard_map"]["all"]
    calls = sorted(row["calls"])
    assert [call[:2] for call in calls] == [[0, 0], [0, 1], [1, 2], [1, 3]]
    (devices,) = row["devices"]
    assert len(set(devices)) == 4
    assert [call[2] for call in calls] == devices
    assert all(thread.startswith(f"process {who} · ") for who, _, _, thread in calls)
    assert (row["status"], row["expected"]) == ("kept", 4)
    assert row["notes"] == ["2 calls in each of 2 processes"]


@pytest.mark.parametrize("flavor", FLAVORS)
@BOTH
def test_under_jit_one_process_calls_and_all_have_the_result(found, flavor, process):
    """JAX's own pure_callback results zeros on all devices but the first."""
    row = found[process]["programs"][f"{flavor}: jit"]
    whole = list(range(8))
    assert row["seen"] == ([whole] if process == 0 else [])
    doubled = [2 * x for x in whole]
    for part in row["parts"]:
        assert part == doubled if len(part) == 8 else set(part) < set(doubled)
    assert row["all"]["calls"][0][0] == 0 and len(row["all"]["calls"]) == 1
    assert (row["all"]["status"], row["all"]["expected"]) == ("kept", 1)
    assert row["all"]["notes"] == ["1 call in process 0, 0 calls in process 1"]


@pytest.mark.parametrize("flavor", FLAVORS)
def test_process_reports_that_another_one_makes_its_calls(found, flavor):
    own = [process["programs"][f"{flavor}: jit"]["own"] for process in found]
    assert [one["status"] for one in own] == ["kept", "not_run"]
    assert [one["expected"] for one in own] == [1, 0]
    assert own[1]["reason"] == "another process makes its calls on behalf of all"


@BOTH
def test_statuses_that_differ_are_reported_by_process(found, process):
    row = found[process]["different"]
    assert row["status"] == "kept" and [call[0] for call in row["calls"]] == [0, 0, 0]
    counts, status = row["notes"][:2]
    assert counts == "3 calls in process 0, 0 calls in process 1"
    assert status.startswith("unused in process 1: nothing uses its result")
    assert "unused in process 1" in row["text"]


@BOTH
def test_errors_are_those_of_the_process_that_raised(found, process):
    calls = sorted(found[process]["failing"])
    assert calls == [[0, None], [1, "ValueError: no luck here"]]


def test_other_process_is_reported_which_failed_and_no_error_of_its_own(found):
    own, other = (process["failing for all"] for process in found)
    assert "ValueError: no luck for all" in own
    assert "failed in process 0" in other and "no luck here" not in other


def test_all_processes_get_the_same_with_every_transport(found):
    """In pieces, and by JAX's public collectives where its store is not there."""
    texts = {text for process in found for text in process["by hand"].values()}
    assert len(texts) == 1


def test_nothing_is_left_in_the_store_of_the_run(found):
    """Process 0 clears up, when all others have read everything."""
    assert found[0]["left in the store"] == []


def test_processes_are_named(found):
    assert found[0]["processes"] == found[1]["processes"]
    assert len(set(found[0]["processes"])) == 2


def test_clocks_of_two_machines_are_compared(found):
    """Process 1 is reported to have a clock that is five seconds ahead."""
    assert found[0]["skewed"]["processes"] == found[1]["skewed"]["processes"]
    first, second = found[0]["skewed"]["processes"]
    assert (first["offset_ns"], first["error_ns"]) == (0, 0)
    assert 0 < second["error_ns"] < 1_000_000_000
    assert abs(second["offset_ns"] + 5_000_000_000) <= second["error_ns"]
    assert found[0]["skewed"]["clocks"].startswith("compared, within ")
    assert [process["skewed"]["moved_ns"] for process in found] == [0, second["offset_ns"]]


def test_missing_process_is_named(found):
    absent = found[0]["absent"]["absent"]
    assert absent.startswith(
        "TimeoutError: cannot gather: process 1 of 2 did not call jaxcb.gather within 0.5 s. Every "
        "process of a jax.distributed run must call it"
    )


@BOTH
def test_late_process_joins_the_next_attempt(found, process):
    assert found[process]["absent"]["again"] == 2


def test_a_mistake_in_one_process_is_reported_in_the_others_at_once(found):
    other, own = (process["absent"]["no recording"] for process in found)
    assert own.startswith("TypeError: cannot gather str 'nonsense': it is not a recording. ")
    assert "process 1 gave up with \"TypeError: cannot gather str 'nonsense'" in other
    assert [process["absent"]["once more"] for process in found] == [2, 2]


@BOTH
def test_what_was_gathered_is_not_gathered_again(found, process):
    """Both raise; one of them may first see that the other gave up."""
    assert "is already gathered" in found[process]["absent"]["gathered twice"]


def test_a_process_that_computes_nothing_keeps_no_other_waiting():
    assert run_in_processes("idle.py") == [[0], [0]]


@BOTH
def test_calls_are_in_the_order_in_which_the_processes_took_turns(found, process):
    """A barrier of all processes comes after each."""
    turns = found[process]["in turn"]
    assert turns["by end"] == turns["by start"] == [0, 1, 0, 1, 0, 1]
    assert turns["values"] == [["0"], ["1"], ["2"], ["3"], ["4"], ["5"]]
