"""A recording names the device of each shard, even if the mesh has the devices in any order."""

from pathlib import Path

import pytest

ORDERS = ([0, 1, 2, 3], [2, 0, 3, 1], [3, 1])
FLAVORS = ("pure", "io", "debug")


@pytest.fixture(scope="module")
def found(in_process):
    return in_process(Path(__file__).with_name("placed.py"), devices=4).value


def check(row, order):
    """Check that shard i is on the i-th device of the mesh and has the values of that device."""
    names = [f"cpu:{number}" for number in order]
    assert [[shard, device] for shard, device, _ in row["samples"]] == [
        *map(list, enumerate(names))
    ]
    assert sorted([device, first] for _, device, first in row["samples"]) == row["placed"]
    assert row["calls"] == len(order)
    assert row["devices"] == names
    assert row["text"].endswith(f"  {len(order)} shards ({', '.join(names)})")


@pytest.mark.long
@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("again", ["", ", again"], ids=["first run", "second run"])
@pytest.mark.parametrize("flavor", FLAVORS)
def test_shard_map_makes_each_call_on_the_device_of_the_shard(found, flavor, again, order):
    check(found[f"{flavor}: shard_map on {order}{again}"], order)


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("flavor", FLAVORS)
def test_pmap_makes_calls_on_the_devices_it_was_given(found, flavor, order):
    check(found[f"{flavor}: pmap on {order}"], order)


@pytest.mark.parametrize("axes", [("a", "b"), ("b", "a")], ids=str)
def test_shards_of_a_grid_are_numbered_as_the_grid_however_the_array_is_split(found, axes):
    check(found[f"shard_map on a grid by {axes}"], [2, 0, 3, 1])


def test_program_compiled_ahead_of_time_names_devices_in_any_thread(found):
    check(found["ahead of time, in a thread"], [0, 1, 2, 3])


@pytest.mark.parametrize(("program", "size"), [("jit", 160), ("jit, two arguments", 168)])
def test_report_of_a_plain_jit_has_the_bytes_it_gathers(found, program, size):
    row = found[program]
    assert row["samples"] == [[None, "", 0.0]]
    assert (row["calls"], row["gathered"], row["devices"]) == (1, size, [])
    assert row["text"].endswith(f"  gathers {size} B")


def test_plain_jit_on_one_device_gathers_nothing(found):
    row = found["jit on one device"]
    assert (row["gathered"], row["samples"]) == (0, [[None, "", 0.0]])
    assert "gathers" not in row["text"] and "shards" not in row["text"]
