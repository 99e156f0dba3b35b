"""A crossing or a script that ends loses no calls and leaves nothing behind."""

import concurrent.futures
import gc
import os
import pickle
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.stack import interrupt

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
    """Run work immediately."""

    def submit(self, work, /, *args):
        future = concurrent.futures.Future()
        future.set_result(work(*args))
        return future


@pytest.fixture
def end_of_script(in_process):
    def run(path, executor, last):
        ran = in_process(SCRIPT.format(path=str(path), executor=executor, last=last), status=None)
        return ran, os.path.getsize(path) if path.exists() else 0

    return run


@pytest.mark.long
@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_script_that_ends_early_finishes_its_programs(end_of_script, tmp_path, executor):
    ran, made = end_of_script(tmp_path / "made", executor, "")
    assert (made, ran.returncode, ran.stderr) == (1_000, 0, "")


@pytest.mark.long
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
        callback = jaxcb.pure(host, result="x", executor=Immediate(), chunksize=1)
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


def test_rows_that_several_elements_need_are_sent_once():
    sent = []

    class Measured(concurrent.futures.Executor):
        def submit(self, work, /, *args):
            data = pickle.dumps(args)
            sent.append(len(data))
            future = concurrent.futures.Future()
            future.set_result(pickle.loads(pickle.dumps(work(*pickle.loads(data)))))
            return future

    rows, x = np.ones((2, 10_000), np.float32), np.arange(8, dtype=np.float32)
    f = jaxcb.pure(lambda row, x: row.sum() + x, result="x", executor=Measured(), chunksize=16)
    program = jax.jit(jax.vmap(jax.vmap(f, (None, 0)), (0, None)))
    np.testing.assert_array_equal(program(rows, x), np.stack([x, x]) + 10_000)
    assert len(sent) == 1 and sent.pop() < 2 * rows.nbytes


def test_a_worker_unpickles_a_function_once_and_keeps_what_it_remembers(elements):
    seen = []
    f = elements(lambda x: (seen.append(x), x.dtype.type(len(seen)))[1], executor="processes:1")
    assert f(np.arange(8, dtype=np.float32)).tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert f(np.arange(2, dtype=np.float32)).tolist() == [9, 10] and seen == []
