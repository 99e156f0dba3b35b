"""Programs whose host call never returns, on a thread of XLA, while the main thread waits in C++.

test_ctrl_c.py runs one, by name. The host function prints ``inside`` once the main thread is stuck.
"""

import ctypes
import hashlib
import os
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

if "shards" in sys.argv:
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax
import jax.numpy as jnp
import numpy as np

import jupyter_jaxcb as jaxcb

S = jax.ShapeDtypeStruct((), np.float32)
BIG = jnp.ones((800, 800))
SLOWLY = jax.jit(lambda x: (x @ BIG @ BIG @ BIG @ BIG @ BIG @ BIG @ BIG @ BIG @ BIG)[0, 0] * 0)
LOCK = threading.Lock()
SERVER = socket.create_server(("127.0.0.1", 0))  # accepts nobody
RESULTS = []  # of the program that waits for the host call


DOUBLED = jax.jit(lambda x: x * 2)


def say_inside():
    """Print ``inside`` when the main thread stays at one instruction, or in one function.

    Or once it has dispatched the program: a watchdog looks later. `RESULTS` is found by its name,
    because processes get the globals that this mentions.
    """
    seen, times, main = None, 0, sys.modules["__main__"]
    while not main.RESULTS if "at once" in sys.argv else times < 50:
        frame = sys._current_frames()[threading.main_thread().ident]
        now = frame.f_code if "in Python" in sys.argv else (id(frame), frame.f_lasti)
        seen, times = now, times + 1 if now == seen else 0
        time.sleep(0.01)
    print("inside", flush=True)


def waits_for_its_program(x):
    say_inside()
    RESULTS[0].block_until_ready()
    return x


def converts_the_result_of_its_program(x):
    say_inside()
    return np.asarray(RESULTS[0])


def waits_for_a_lock(x):
    say_inside()
    with LOCK:
        return x


def is_in_c(x):
    say_inside()
    ctypes.CDLL(None).sleep(1000)
    return x


def ignores_exceptions(x):
    say_inside()
    while True:
        try:
            time.sleep(0.05)
        except BaseException:
            pass


def computes_in_c(x):
    say_inside()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
    return x


def uses_jnp(x):
    say_inside()
    return np.asarray(jnp.sin(RESULTS[0]))


def calls_a_jitted_global(x):
    say_inside()
    return np.asarray(DOUBLED(RESULTS[0]))


def waits_for_another_callback(x):
    say_inside()
    return np.asarray(OTHER(x))


def is_called_by_a_host_function(x):
    with LOCK:
        return x


def waits_for_the_program_behind_its_queue(x):
    say_inside()
    RESULTS[0].block_until_ready()


def loops(x):
    say_inside()
    turns = 0
    while True:
        turns += 1


def waits_for_a_server(x):
    with socket.create_connection(SERVER.getsockname()) as connection:
        say_inside()
        connection.recv(1)
    return x


def waits_for_a_server_in_threads(x):
    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(waits_for_a_server, [x, x]))


def fails_on_one_device(x):
    if x > 0:
        threading.Thread(target=say_inside, daemon=True).start()
        raise ValueError("no luck")
    return x


def begins_a_loop(x):
    threading.Thread(target=say_inside, daemon=True).start()
    return x


def before_endless_loop(call):
    return lambda x: jax.lax.while_loop(lambda x: x < 1, lambda x: x * 0.5, call(x))


def summed(call):
    """Return a function that adds the results of all devices."""
    mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("d")
    return jax.shard_map(
        lambda x: jax.lax.psum(call(x[0]), "d")[None],
        mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False,
    )  # fmt: skip


def queued_in_loop(host):
    """Return a function with more queued calls than there is room for."""
    jaxcb.set_queue_limit(4096)

    def step(_, x):
        jaxcb.debug_callback(host, x, queued=True)
        return x * 0.5

    return lambda x: jax.lax.fori_loop(0, 1000, step, x)


def loops_in_machine_code(x):
    while x < 1:
        x = x * np.float32(2)
    return x


OTHER = jax.jit(lambda x: jax.pure_callback(is_called_by_a_host_function, S, x)).lower(S).compile()


def main(cores, name, api, *how):
    allowed = sorted(os.sched_getaffinity(0))[: int(cores)]
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), allowed)
    host = globals()[name]
    x = S
    if api == "queue":
        called = queued_in_loop(host)
    elif api == "numba":
        called = jaxcb.pure(host, result=S, compile=api)
    elif api in ("threads", "processes"):
        called = jaxcb.pure(host, result=S, executor=api)
    else:
        call = jax.pure_callback if api == "jax" else jaxcb.pure_callback
        called = partial(call, host, S)
    if api == "loop":
        called = before_endless_loop(called)
    if api == "shards":
        called, x = summed(called), jax.ShapeDtypeStruct((2,), np.float32)
    program = jax.jit(lambda x: called(x)).lower(x).compile()
    SLOWLY(BIG).block_until_ready()
    if api == "numba":
        threading.Thread(target=say_inside, daemon=True).start()
    given = np.arange(2, dtype=np.float32) if api == "shards" else np.float32(0)
    if "watched" in how or "in plain Python" in how:
        jaxcb.watchdog(1 if "at once" in how or "watched" in how else 3600)
    if api == "threads of the user":
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(program, [given, given]))
    with LOCK:
        RESULTS.append(program(given if "in Python" in how or api == "shards" else SLOWLY(BIG)))
        if "for signals too" in how:
            RESULTS[0].block_until_ready()
        np.asarray(RESULTS[0])  # unlike block_until_ready, it handles no signals while it waits


if __name__ == "__main__":
    main(*sys.argv[1:])
