"""Each mistake raises an error of one clear paragraph, before any host call."""

import concurrent.futures
import functools
import re
import sys
import threading

import distributed
import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

X = np.arange(4, dtype=np.float32)


def one_paragraph(error):
    words = str(error)
    assert "\n" not in words and words.endswith(".") and len(words) < 500
    return words


def never(x):
    pytest.fail("it was called")


class Unknown(concurrent.futures.Executor):
    """An executor of a kind that is not known: it may pickle what it gets."""


@pytest.mark.parametrize("register", [jaxcb.pure, jaxcb.io])
@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"executor": "thraeds"}, ValueError, "did you mean 'threads'?"),
        ({"executor": "threads:none"}, ValueError, "unknown executor 'threads:none'"),
        ({"executor": "threads:0"}, ValueError, "unknown executor 'threads:0'"),
        ({"executor": "dask:somewhere"}, ValueError, "unknown executor 'dask:somewhere'"),
        ({"executor": 3}, TypeError, "executor=3 is not an executor. Pass one of 'threads'"),
        ({"timeout": 1.0}, ValueError, "timeout=1.0 needs executor="),
        ({"chunksize": 2}, ValueError, "chunksize=2 needs executor="),
        ({"executor": "threads", "timeout": 0}, ValueError, "Try timeout=2.5."),
        ({"executor": "threads", "timeout": 1e300}, ValueError, "Try timeout=2.5."),
        ({"executor": "threads", "chunksize": 1.5}, ValueError, "Try chunksize=10."),
        ({"executor": "processes", "arrays": "jax"}, ValueError, "pass executor='threads'"),
        ({"executor": Unknown(), "arrays": "jax"}, ValueError, "pass executor='threads'"),
        ({"executor": Unknown(), "compile": "numba"}, ValueError, "pass executor='threads'"),
    ],
)
def test_wrong_option_is_reported_at_registration(register, options, kind, words):
    with pytest.raises(kind, match=re.escape(words)) as caught:
        register(never, result=lambda x: x, **options)
    one_paragraph(caught.value)


def test_ordered_callback_takes_no_executor():
    with pytest.raises(ValueError, match=r"Drop ordered=True or executor='threads'\.") as caught:
        jaxcb.io_callback(never, None, X, ordered=True, executor="threads")
    one_paragraph(caught.value)


@pytest.mark.parametrize(
    "pool", [concurrent.futures.ThreadPoolExecutor, concurrent.futures.ProcessPoolExecutor]
)
def test_executor_that_is_shut_down_is_reported_immediately(pool):
    executor = pool(1)
    executor.shutdown()
    with pytest.raises(ValueError, match="is shut down") as caught:
        jaxcb.pure(never, result=lambda x: x, executor=executor)
    one_paragraph(caught.value)


def test_executor_that_is_shut_down_later_is_reported_by_the_call(failure):
    executor = concurrent.futures.ThreadPoolExecutor(1)
    f = jax.jit(jax.vmap(jaxcb.pure(lambda x: x, result=lambda x: x, executor=executor)))
    f(X).block_until_ready()
    executor.shutdown()
    error, _words = failure(f, X)
    assert isinstance(error, jaxcb.ExecutorError)
    assert "is shut down. Register the callback with a new" in one_paragraph(error)


class Cancelling(concurrent.futures.Executor):
    def submit(self, *work):
        future = concurrent.futures.Future()
        future.cancel()
        return future


def test_executor_that_cancels_its_work_is_reported(elements, failure):
    error, words = failure(elements(never, executor=Cancelling()), X)
    assert isinstance(error, jaxcb.ExecutorError) and "cancelled the work it was given" in words
    assert "in batch element" not in words


class Rejecting(concurrent.futures.Executor):
    def submit(self, *work):
        raise RuntimeError("no")


@pytest.mark.parametrize("executor", [Cancelling(), Rejecting()])
def test_note_on_work_that_an_executor_does_not_take_has_the_number_of_the_call(
    elements, failure, executor
):
    _, words = failure(elements(never, executor=executor, chunksize=2), X)
    assert "in call 1 since registration" in words


@pytest.mark.parametrize("under", [jax.jit, lambda f: f], ids=["jit", "eager"])
def test_function_that_cannot_be_pickled_is_reported_before_anything_runs(under):
    lock = threading.Lock()

    def host(x):
        with lock:
            pytest.fail("it was called")

    f = jaxcb.pure(host, result=lambda x: x, executor="processes")
    with pytest.raises(TypeError, match="cannot send host to executor='processes'") as caught:
        under(jax.vmap(f))(X)
    assert "executor='threads'" in one_paragraph(caught.value)


def test_argument_that_cannot_be_pickled_is_reported_before_anything_runs():
    call = functools.partial(jaxcb.pure_callback, never, X[0], executor="processes")
    with pytest.raises(TypeError, match=r"cannot send the argument <unl.* of never") as caught:
        jax.jit(lambda x: call(x, threading.Lock()))(X)
    assert "executor='threads'" in one_paragraph(caught.value)


@pytest.mark.long
def test_unreachable_address_is_reported_before_anything_runs():
    f = jaxcb.pure(never, result=lambda x: x, executor="dask:tcp://127.0.0.1:9")
    with pytest.raises(jaxcb.ExecutorError, match="no scheduler listens at tcp://127") as caught:
        jax.jit(f)(X)
    one_paragraph(caught.value)


def test_dask_without_a_client_is_reported_before_anything_runs():
    f = jaxcb.pure(never, result=lambda x: x, executor="dask")
    with pytest.raises(jaxcb.ExecutorError, match=r"Start it first with distributed\.Client\(\)"):
        jax.jit(f)(X)


@pytest.mark.parametrize(
    ("name", "module", "packages"),
    [("processes:3", "loky", "loky"), ("dask", "distributed", "distributed")],
)
def test_missing_library_is_reported_with_its_install_command(monkeypatch, name, module, packages):
    monkeypatch.setitem(sys.modules, module, None)  # importing it fails
    f = jaxcb.pure(never, result=lambda x: x, executor=name)
    words = rf"executor='{name[:4]}.* needs .*`pip install {packages} cloudpickle`"
    with pytest.raises(ModuleNotFoundError, match=words):
        jax.jit(f)(X)


@pytest.mark.long
def test_import_does_not_import_executor_libraries(in_process):
    libraries = ["loky", "distributed", "dask", "ipyparallel", "mpi4py"]  # JAX has cloudpickle
    code = f"import jupyter_jaxcb, sys; print([n for n in {libraries} if n in sys.modules])"
    assert in_process(code).stdout.strip() == "[]"


def test_worker_imports_neither_jax_nor_the_package(elements):
    def host(x):
        import sys

        return float("jax" in sys.modules or "jupyter_jaxcb" in sys.modules)

    assert elements(host, executor="processes:1")(X).tolist() == [0] * 4


def test_executor_of_dask_that_runs_equal_calls_once_is_refused(calls):
    count = calls.counter()
    with distributed.Client(processes=False, n_workers=1, dashboard_address=":0") as client:
        with pytest.raises(ValueError, match=r"Pass client\.get_executor\(pure=False\)") as caught:
            jaxcb.io(never, result=None, executor=client.get_executor())
        one_paragraph(caught.value)
        executor = client.get_executor(pure=False)
        log = jaxcb.io(lambda x: count("made") and None, result=None, executor=executor)
        jax.jit(jax.vmap(log))(np.zeros(4))
        jax.effects_barrier()
    assert calls.counted() == {"made": 4}
