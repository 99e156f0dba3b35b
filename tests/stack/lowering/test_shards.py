"""On several devices, a recording has the shard of each call, and the bytes gathered for a call."""

from collections import Counter
from pathlib import Path

import pytest

FLAVORS = ("pure", "io", "debug")


@pytest.fixture(scope="module")
def found(in_process):
    return in_process(Path(__file__).with_name("shards.py"), devices=4).value


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize("program", ["shard_map", "pmap"])
def test_every_device_calls_once_with_its_own_shard(found, flavor, program):
    """Device i has the numbers 2i and 2i + 1. The calls run in parallel, in any order."""
    row = found[f"{flavor}: {program}"]
    assert sorted(row["shards"]) == [0, 1, 2, 3]
    assert sorted(row["first"]) == [0, 2, 4, 6]
    assert (row["devices"], row["gathered"]) == ([4], [0])
    assert (row["compiled"], row["expected"]) == ([4], 4)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_elements_of_a_shard_are_calls_of_that_shard(found, flavor):
    row = found[f"{flavor}: shard_map of vmap"]
    assert Counter(row["shards"]) == {0: 2, 1: 2, 2: 2, 3: 2}
    assert sorted(row["first"]) == list(range(8))
    assert (row["compiled"], row["expected"]) == ([8], 8)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_plain_jit_gathers_the_whole_array_for_one_call(found, flavor):
    row = found[f"{flavor}: jit"]
    assert (row["shards"], row["first"], row["devices"]) == ([None], [0], [4])
    assert (row["gathered"], row["compiled"], row["expected"]) == ([8 * 4], [1], 1)


@pytest.mark.parametrize("flavor", ["io for a batch", "debug for a batch"])
def test_call_for_a_batch_gets_that_of_its_shard_or_all_of_it(found, flavor):
    row = found[f"{flavor}: shard_map of vmap"]
    assert (sorted(row["shards"]), sorted(row["first"])) == ([0, 1, 2, 3], [0, 2, 4, 6])
    assert (row["compiled"], row["expected"]) == ([4], 4)
    row = found[f"{flavor}: jit of vmap"]
    assert (row["shards"], row["first"], row["gathered"]) == ([None], [0], [8 * 4])
    assert (row["compiled"], row["expected"]) == ([1], 1)


def test_every_device_calls_a_partitioned_debug_callback_and_gathers_nothing(found):
    row = found["partitioned: jit"]
    assert sorted(row["first"]) == [0, 2, 4, 6]
    assert (row["gathered"], row["compiled"], row["expected"]) == ([0], [4], 4)
