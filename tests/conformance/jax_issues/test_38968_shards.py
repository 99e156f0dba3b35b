"""On several devices, does the host function get the whole array or shards? jax-ml/jax#38968.

Under plain jit the host function is called once with the whole, gathered array (jax-ml/jax#25671);
under shard_map every device calls it with its shard, in any order. Ordered debug callbacks are
refused. Ours does the same, and the recording shows which of the two happened.
"""

import pytest

WHOLE = [[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]]
SHARDS = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]

theirs_and_ours = pytest.mark.parametrize("whose", ["theirs", "ours"])
flavors = pytest.mark.parametrize("flavor", ["pure", "io", "debug"])


@pytest.fixture(scope="module")
def found(child):
    return child("four_devices.py", devices=4)


@theirs_and_ours
@flavors
def test_plain_jit_calls_once_with_the_whole_array(found, whose, flavor):
    assert found[f"{whose}: {flavor}, jit"] == [WHOLE, None]


@theirs_and_ours
@flavors
def test_shard_map_calls_once_per_device_with_its_shard(found, whose, flavor):
    assert found[f"{whose}: {flavor}, shard_map"] == [SHARDS, None]


@theirs_and_ours
def test_partitioned_debug_calls_once_per_device_with_its_shard_under_jit(found, whose):
    assert found[f"{whose}: partitioned debug, jit"] == [SHARDS, None]


@theirs_and_ours
@pytest.mark.parametrize("program", ["jit", "shard_map"])
def test_ordered_debug_is_refused_before_any_host_call(found, whose, program):
    calls, error = found[f"{whose}: ordered debug, {program}"]
    assert calls == []
    assert error.startswith("ValueError: ")
    assert "ordered effects are not supported for more than 1 device" in error


def test_recording_distinguishes_the_whole_array_from_the_shards(found):
    assert found["recorded"] == [["float32[8]"], *4 * [["float32[2]"]]]
