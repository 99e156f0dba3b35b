"""A crossing or a script that ends loses no calls and leaves nothing behind."""

import concurrent.futures
import gc
import os
import pickle
import tempfile
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities.executors._board import board
from jupyter_jaxcb.stack import interrupt

FIRST = jax.ShapeDtypeStruct((), np.float32)
SCRIPT = """
import jax, jax.numpy as jnp, jupyter_jaxcb as jaxcb

def main():
    def host(x):
        with open({path!r}, "ab") as file:
            file.write(b".")
        return x

    callback = jaxcb.io(host, result="x", executor={executor!r}, chunksize=1)
    f = jax.jit(lambda x: jax.vmap(callback)(x + jnp.arange(1_000.0))).lower(1.0).compile()
    slowly = jax.jit(lambda x: jax.lax.fori_loop(0, 8, lambda i, y: y @ x / 1_200, x)[0, 0])
    big = jnp.ones((1_200, 1_200))
    slowly(big).block_until_ready()
    f(slowly(big))  # runs asynchronously, and the script never waits for it

main()
{last}
"""


class Immediate(concurrent.futures.Executor):
    """Run work immediately and pass its future to `seen`."""

    def __init__(self, seen):
        self.seen = seen

    def submit(self, work, /, *args):
        future = concurrent.futures.Future()
        future.set_result(work(*args))
        self.seen(future)
        return future


@pytest.fixture
def end_of_script(in_process):
    def run(path, executor, last):
        ran = in_process(SCRIPT.format(path=str(path), executor=executor, last=last), status=None)
        return ran, os.path.getsize(path) if path.exists() else 0

    return run


@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_script_that_ends_early_finishes_its_programs(end_of_script, tmp_path, executor):
    ran, made = end_of_script(tmp_path / "made", executor, "")
    assert (made, ran.returncode, ran.stderr) == (1_000, 0, "")


def test_script_that_is_interrupted_does_not_finish_its_programs(end_of_script, tmp_path):
    ran, made = end_of_script(tmp_path / "made", "threads:2", "raise KeyboardInterrupt")
    assert made < 1_000 and ran.stderr.rstrip().endswith("\nKeyboardInterrupt")


def test_futures_and_their_results_are_freed_immediately():
    """No garbage collection is needed: on a cluster, each future keeps a result in memory."""
    futures = []

    class Pool(concurrent.futures.ThreadPoolExecutor):
        def submit(self, work, /, *args):
            future = super().submit(work, *args)
            futures.append(weakref.ref(future))
            return future

    gc.disable()
    try:
        with Pool(1) as pool:
            f = jaxcb.pure(lambda x: x + 1, result="x", executor=pool, chunksize=4)
            jax.jit(jax.vmap(f))(np.arange(32, dtype=np.float32)).block_until_ready()
        assert [future() for future in futures] == [None] * 8
    finally:
        gc.enable()


def test_board_entries_of_cancelled_chunks_are_freed(elements, failure):
    class Stuck(concurrent.futures.ProcessPoolExecutor):
        """Fail the first work it gets and never start the rest."""

        given = 0

        def submit(self, work, /, *args):
            self.given += 1
            future = concurrent.futures.Future()
            if self.given == 2:
                args[1].board, place = None, args[1].board
                future.set_result(work(*args))
                args[1].board = place
            return future

    def host(x):
        raise ValueError("no")

    free = len(board()._free)
    with Stuck(1) as pool:
        pool.given = 1
        failure(elements(host, executor=pool, chunksize=1), np.arange(8, dtype=np.float32))
        assert pool.given > 2
    assert len(board()._free) == free


def test_interrupt_ends_a_run_whose_chunks_return_immediately():
    """There is always another chunk that has already returned."""
    inside, go_on, made = threading.Event(), threading.Event(), []

    def host(x):
        made.append(1)
        if len(made) == 5:
            inside.set()
            go_on.wait(60)
        return x

    def run():
        """Run in a new thread, where no host call has failed."""
        own = Immediate(lambda future: None)
        callback = jaxcb.pure(host, result="x", executor=own, chunksize=1)
        f = jax.jit(lambda x: jax.vmap(callback)(x + jnp.arange(100.0))).lower(1.0).compile()
        slowly = jax.jit(lambda x: jax.lax.fori_loop(0, 8, lambda i, y: y @ x / 1_200, x)[0, 0])
        big = jnp.ones((1_200, 1_200))
        slowly(big).block_until_ready()
        y = f(slowly(big))  # runs asynchronously
        assert inside.wait(60)
        interrupt()
        go_on.set()
        with pytest.raises(Exception, match="not called, because its run was interrupted"):
            y.block_until_ready()

    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        thread.submit(run).result(120)
    assert len(made) == 5


@pytest.mark.parametrize("where", ["operand", "keyword", "closure"])
def test_large_arrays_are_sent_to_processes_once_for_all_chunks(monkeypatch, tmp_path, where):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sent = []

    class Measured(concurrent.futures.ProcessPoolExecutor):
        def submit(self, work, /, *args):
            future = concurrent.futures.Future()
            data = pickle.dumps(args)
            sent.append(len(data))
            future.set_result(pickle.loads(pickle.dumps(work(*pickle.loads(data)))))
            return future

    table = np.arange(1_000_000, dtype=np.float32)

    def look_up(i, table=table):
        assert where == "closure" or not table.flags.writeable
        return table[int(i)]

    arguments = {"operand": ((table,), {}), "keyword": ((), {"table": table}), "closure": ((), {})}
    with Measured(1) as pool:

        def f(i):
            args, kwargs = arguments[where]
            return jaxcb.pure_callback(
                look_up, FIRST, i, *args, vmap_method="sequential", executor=pool, chunksize=3,
                **kwargs,
            )  # fmt: skip

        x = np.arange(9)
        np.testing.assert_array_equal(jax.jit(jax.vmap(f))(x), table[x])
    assert len(sent) == 3 and max(sent) < 100_000
    assert list(tmp_path.glob("*.array")) == []
