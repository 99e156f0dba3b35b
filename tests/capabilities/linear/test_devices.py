"""Linear callbacks in a `jax.shard_map` over four devices."""

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def errors(in_process):
    return in_process(Path(__file__).with_name("devices.py"), devices=4).value


@pytest.mark.parametrize("name", ["both", "replicated vector", "replicated matrix"])
def test_derivatives_in_a_shard_map_sum_over_the_shards_as_those_of_jax(errors, name):
    assert errors[name] < 1e-10
