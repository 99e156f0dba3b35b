"""JAX's callbacks can deadlock when they use their argument: jax-ml/jax#24255.

The argument is a JAX array. Using it waits for XLA, whose threads wait for the callback. Ours gets
a NumPy array, which is ready.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ._both import VERSION

PROGRAM = Path(__file__).with_name("in_flight.py")
NUMPY = ("np.max", "index", "iterate", "np.asarray")
# Whether JAX's own callback hangs, by version, for every use except np.asarray on two cores. For
# versions that are not listed, it is unknown.
HANGS = {(0, 10): True, (0, 12): False}
SECONDS_TO_FINISH = 5 if HANGS.get(VERSION, True) else 60  # takes one second on an idle machine

cores = pytest.mark.parametrize(
    "cores",
    [
        pytest.param(
            1,
            marks=pytest.mark.skipif(
                not hasattr(os, "sched_setaffinity"), reason="only Linux pins a process to a core"
            ),
        ),
        2,
    ],
    ids=["one core", "two cores"],
)


@contextlib.contextmanager
def started(**options):
    """Start the program in a process, and kill the process at the end of the block."""
    command = [sys.executable, PROGRAM, json.dumps(options)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def hung(process, deadline):
    """Return whether the process is still running at the deadline; else check its results."""
    try:
        process.wait(timeout=max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return True
    assert process.returncode == 0
    assert not any(json.loads(process.stdout.readline()).values())
    return False


@pytest.fixture(scope="module")
def theirs_hung():
    """For each use of the argument, whether JAX's own callback hung."""
    programs = {use: dict(cores=2, uses=[use]) for use in ("np.max", "index", "iterate", "jnp")}
    if hasattr(os, "sched_setaffinity"):
        programs["np.asarray"] = dict(cores=1, uses=["np.asarray"])
    with contextlib.ExitStack() as stack:
        processes = {
            use: stack.enter_context(started(whose="theirs", **options))
            for use, options in programs.items()
        }
        for process in processes.values():
            assert process.stdout.readline() == "calling\n"
        deadline = time.monotonic() + SECONDS_TO_FINISH
        return {use: hung(process, deadline) for use, process in processes.items()}


@pytest.mark.long
def test_callback_of_jax_hangs_exactly_on_the_known_versions(theirs_hung):
    """On other versions it may or may not hang."""
    assert set(theirs_hung) >= {"np.max", "index", "iterate", "jnp"}
    if VERSION in HANGS:
        assert any(theirs_hung.values()) is HANGS[VERSION], theirs_hung


@cores
def test_our_callback_may_use_its_argument_with_numpy(cores, child):
    """Fifty calls are in flight, and none hangs."""
    wrong = child("in_flight.py", whose="ours", cores=cores, uses=NUMPY, flavors=["pure", "io"])
    assert wrong == {f"{use}, {flavor}, numpy": False for use in NUMPY for flavor in ("pure", "io")}


@pytest.mark.long
@cores
def test_jax_in_a_host_function_does_not_hang_with_synchronous_dispatch(cores, child):
    """With asynchronous dispatch, JAX up to 0.10 may hang, with our callbacks and with its own."""
    uses, arrays = ["jnp", "np.max"], ["numpy", "jax"]
    options = dict(cores=cores, uses=uses, arrays=arrays, dispatch="sync")
    wrong = child("in_flight.py", whose="ours", **options)
    assert wrong == {f"{use}, pure, {kind}": False for use in uses for kind in arrays}
