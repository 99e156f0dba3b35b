"""On two devices: one call per device under pmap, one call in all under jit, and its device."""

from pathlib import Path

import numpy as np
import pytest

XS = [[0, 1], [2, 3]]
BATCH = [["batch", {"batch_dims": [0]}]]
NAMES = ["cpu:0", "cpu:1"]


@pytest.fixture(scope="module")
def found(in_process):
    return in_process(Path(__file__).with_name("devices.py"), devices=3).value


def calls_of(found, name):
    """Return the calls sorted by device, and for each device in the order they were made."""
    row = found[name]
    assert (row["error"], row.get("barrier")) == ("", None)
    return sorted(row["calls"], key=lambda call: call[2])


@pytest.mark.long
def test_pmap_calls_once_per_device_with_its_slice(found):
    assert calls_of(found, "pmap") == [[[0, 1], [], 0], [[2, 3], [], 1]]
    row = found["pmap"]
    assert (row["back"], row["shards"], row["compiled"]) == (XS, NAMES, [2])


def test_reported_device_is_that_of_the_slice(found):
    assert calls_of(found, "pmap on the second device") == [[[0, 1], [], 1]]
    assert calls_of(found, "pmap on both devices, swapped") == [[[2, 3], [], 0], [[0, 1], [], 1]]


def test_pmap_and_vmap_make_one_batched_call_per_device(found):
    assert calls_of(found, "pmap of vmap") == [[[0, 1], BATCH, 0], [[2, 3], BATCH, 1]]
    assert calls_of(found, "vmap of pmap") == [[[[0], [1]], BATCH, 0], [[[2], [3]], BATCH, 1]]


def test_loop_in_a_pmap_is_in_order_on_each_device(found):
    assert calls_of(found, "pmap of scan") == [
        [[0, 1], [], 0], [[0, 2], [], 0], [[2, 3], [], 1], [[4, 6], [], 1],
    ]  # fmt: skip


def test_grad_in_a_pmap_makes_one_call_per_device(found):
    assert calls_of(found, "pmap of grad") == [[[0, 1], [], 0], [[2, 3], [], 1]]
    assert found["pmap of grad"]["back"] == [[0, 2], [4, 6]]


def test_shard_map_calls_once_per_shard(found):
    assert calls_of(found, "shard_map") == [[[[0, 1]], [], 0], [[[2, 3]], [], 1]]
    assert found["shard_map"]["shards"] == NAMES


@pytest.mark.parametrize(("name", "device"), [("sharded jit", 0), ("sharded jit, device 1", 1)])
def test_jit_over_several_devices_makes_one_call_with_the_whole_array(found, name, device):
    assert calls_of(found, name) == [[XS, [], device]]
    assert (found[name]["back"], found[name]["compiled"], found[name]["statuses"]) == (
        XS, [1], ["kept"],
    )  # fmt: skip


def test_device_index_chooses_the_device_that_calls(found):
    assert found["the device that calls"]["back"] == [[True, False], [False, True]]


def test_program_order_holds_on_several_devices(found):
    twice = [[0, 2], [4, 6]]
    assert found["sharded jit, two taps"]["calls"] == [[XS, [], 0], [twice, [], 0]]
    assert found["sharded jit of scan"]["calls"] == [[XS, [], 0], [twice, [], 0]]


def test_batch_over_several_devices_is_one_call(found):
    assert calls_of(found, "sharded jit of vmap") == [[XS, BATCH, 0]]


def test_eager_tap_of_a_sharded_array_is_one_call(found):
    assert calls_of(found, "sharded, eager") == [[XS, [], 0]]


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("one device", 0),
        ("one device, device 1", 1),
        ("eager, device 1", 1),
        ("on the second device", 0),  # both devices use the same lowering, as documented
    ],
)
def test_program_on_one_device_reports_the_requested_device(found, name, device):
    assert calls_of(found, name) == [[1, [], device]]


@pytest.mark.parametrize("name", ["device 3 of 3", "device 2 where two of three run"])
def test_missing_device_is_refused(found, name):
    row = found[name]
    assert (row["error"], row["calls"]) == ("ValueError", [])


def test_call_in_a_pmap_returns_to_each_device(found):
    assert calls_of(found, "call in pmap") == [[[0, 1], [], 0], [[2, 3], [], 1]]
    np.testing.assert_allclose(found["call in pmap"]["back"], np.sin(XS), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "device", "more"),
    [
        ("call in sharded jit", 0, 1),
        ("call in sharded jit, device 1", 1, 0),
        ("call, sharded and eager", 0, 0),
    ],
)
def test_call_over_several_devices_gets_and_returns_the_whole_array(found, name, device, more):
    assert calls_of(found, name) == [[XS, [], device]]
    np.testing.assert_allclose(found[name]["back"], np.sin(XS) + more, rtol=1e-6)


def test_tap_around_a_pmap_is_one_call(found):
    assert [call[0] for call in calls_of(found, "code around a pmap")] == [XS]


def test_failing_call_over_several_devices_ends_the_program(found):
    row = found["failing call in sharded jit"]
    assert row["error"] == "JaxRuntimeError"
    assert row.get("barrier") in (None, "KeyError('no luck')")


def test_eager_taps_and_calls_work_after_a_failing_call(found):
    """The token that the failed program leaves behind must not make them fail."""
    row = found["eager tap after a failing call"]
    assert (row["error"], row["back"]) == ("", [1, 0])
    assert [call[0] for call in row["calls"]] == [1, 0]


def test_failing_tap_over_several_devices_does_not_end_the_program(found):
    row = found["failing tap in sharded jit"]
    assert (row["error"], row["barrier"], row["back"]) == ("", "KeyError('no luck')", XS)
    assert row["calls"] == [[XS, [], 0]]


def test_barrier_waits_for_every_device(found):
    assert [call[0] for call in found["barrier from each of two devices"]["calls"]] == [300, 300]
