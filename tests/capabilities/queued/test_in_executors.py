"""Queued calls that an executor makes, or compiled code: the program waits for nothing."""

import ctypes
import threading

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

ALL = np.arange(4, dtype=np.float32)


def queued(function, **options):
    return jaxcb.io(function, result=None, queued=True, **options)


def test_program_goes_on_while_the_workers_make_the_calls():
    may_go, seen = threading.Event(), []

    def upload(x):
        may_go.wait()
        seen.append(float(x))

    send = queued(upload, executor="threads:4")
    y = jax.jit(lambda x: (jax.vmap(send)(x), x + 1)[1])(ALL)
    assert y.tolist() == [1, 2, 3, 4]
    assert seen == []
    may_go.set()
    jax.effects_barrier()
    assert sorted(seen) == [0, 1, 2, 3]


@pytest.mark.parametrize("executor", [None, "threads:2"])
@pytest.mark.parametrize("method", ["sequential", "expand_dims"])
def test_masked_calls_get_jax_arrays_from_the_queue(method, executor):
    seen = []

    def upload(x):
        seen.append((isinstance(x, jax.Array), np.ravel(x).tolist()))

    send = queued(upload, executor=executor, arrays="jax", vmap_method=method)
    jax.jit(jax.vmap(lambda x: send.where(x > 1, x)))(ALL)
    jax.effects_barrier()
    arrays = [[2, 3]] if method == "expand_dims" else [[2], [3]]
    assert sorted(seen) == [(True, x) for x in arrays]


def test_calls_of_a_crossing_run_side_by_side_and_crossings_one_after_the_other():
    together, seen = threading.Barrier(2), []

    def upload(step, x):
        together.wait(60)
        seen.append((int(step), float(x)))

    send = queued(upload, executor="threads:2", chunksize=1)
    program = jax.jit(lambda step, x: jax.vmap(send, (None, 0))(step, x))
    for step in range(5):
        program(step, ALL[:2])
    jax.effects_barrier()
    assert [step for step, _ in seen] == [n for n in range(5) for _ in range(2)]
    assert sorted(seen) == [(n, x) for n in range(5) for x in (0, 1)]


@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_recording_has_each_call_once_and_nothing_is_left(executor):
    send = queued(lambda x: None, executor=executor)
    program = jax.jit(jax.vmap(send))
    with jaxcb.record() as r:
        program(ALL)
        program(2 * ALL)
    assert sorted(call.element for call in r.recording) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert r.recording.queue == ()  # no call was dropped, skipped or left


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_mask_executor_and_queue_together_call_for_the_needed_elements(transform):
    seen = []
    send = queued(lambda x: seen.append(float(x)), executor="threads:2")
    program = transform(jax.vmap(lambda x: send.where(x > 1, x)))
    with jaxcb.record() as r:
        program(ALL)
        program(-ALL)
    assert sorted(seen) == [2, 3]
    assert sorted(call.element for call in r.recording) == [2, 3]
    masks = r.recording.masks
    assert (sum(m.elements for m in masks), sum(m.needed for m in masks)) == (8, 2)


@pytest.mark.parametrize("executor", ["threads:2", "processes:2"])
def test_script_makes_its_queued_calls_before_its_executor_ends(in_process, tmp_path, executor):
    done = in_process(
        f"""
        import jax, numpy as np, time, jupyter_jaxcb as jaxcb
        def upload(x):
            time.sleep(0.01)
            with open({str(tmp_path / "calls")!r}, "a") as file:
                file.write(f"{{x:g}}\\n")
        send = jaxcb.io(upload, result=None, queued=True, executor={executor!r})
        program = jax.jit(jax.vmap(send))
        for step in range(3):
            program(np.arange(4.0) + 4 * step)
        """
    )
    assert sorted(map(float, (tmp_path / "calls").read_text().split())) == [*range(12)]
    assert "failed" not in done.stderr


def test_error_of_a_worker_is_raised_by_the_barrier_and_the_next_crossing_is_delivered():
    seen = []

    def upload(x):
        if x == 2:
            raise KeyError("no such bucket")
        seen.append(float(x))

    program = jax.jit(jax.vmap(queued(upload, executor="threads:2", chunksize=1)))
    program(ALL)
    program(10 * ALL[1:])
    with pytest.raises(Exception) as caught:
        jax.effects_barrier()
    assert isinstance(jaxcb.host_error(caught.value), KeyError)
    assert {10, 20, 30} <= {*seen}
    jax.effects_barrier()


def test_dropped_calls_do_not_start_and_are_counted_as_ended():
    begun, may_go, seen = threading.Event(), threading.Event(), []

    def upload(x):
        begun.set()
        may_go.wait()
        seen.append(float(x))

    program = jax.jit(jax.vmap(queued(upload, executor="threads:1", chunksize=1)))
    with jaxcb.record() as r:
        program(ALL)
        program(ALL)
        begun.wait()
        jaxcb.drop_queued()
        may_go.set()
    jax.effects_barrier()
    (use,) = r.recording.queue
    assert use.ended + len(r.recording) == 8
    assert use.left == 0
    assert len(seen) < 4


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_queued_compiled_function_is_called_once_for_each_element(transform):
    seen = []
    note = ctypes.CFUNCTYPE(None, ctypes.c_double)(seen.append)
    send = queued(lambda x: note(x), compile="numba")
    program = transform(jax.vmap(lambda x: (send(x), x)[1]))
    with jaxcb.record() as r:
        program(ALL)
    assert seen == [0, 1, 2, 3]
    assert [call.element for call in r.recording] == [0, 1, 2, 3]
