"""Over four devices the host is called as often and with the same arrays as by JAX's callbacks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("several_devices.py")
FLAVORS = ("pure", "io", "io ordered", "debug", "debug ordered")
PROGRAMS = ("eager", "jit", "shard_map", "vmap", "scan", "on device 1", "on two devices")
MORE = (
    "pure: placed",
    "io: placed",
    "pure: sharding=",
    "io: sharding=",
    "debug: partitioned",
    "debug: partitioned, vmap",
)


@pytest.fixture(scope="module")
def found():
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("key", [f"{f}: {p}" for f in FLAVORS for p in PROGRAMS] + list(MORE))
def test_host_calls_are_those_of_jax(found, key):
    (their_result, their_calls), (our_result, our_calls) = found[key]
    if key.startswith("io ordered") and their_result == "JaxRuntimeError":
        # JAX 0.8 cannot compile ordered io over several devices; its unordered one stands in.
        (their_result, their_calls), _ = found[key.replace("io ordered", "io")]
    assert our_calls == their_calls
    if their_result == "TypeError":  # of JAX's own next operation: it cannot handle the sharding
        assert our_result == [2 * x + 1 for x in our_calls[0]]
    else:
        assert our_result == their_result


def test_whole_array_arrives_once_under_jit_and_each_shard_under_shard_map(found):
    """So that the comparison above cannot hold because nothing was called."""
    _, calls = found["pure: jit"][1]
    assert calls == [[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]]
    _, calls = found["pure: shard_map"][1]
    assert calls == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
