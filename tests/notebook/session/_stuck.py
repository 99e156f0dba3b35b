"""Cells whose program and host function wait for each other, and a reader of their messages."""

import time

from ._in_flight import SETUP

HOSTS = (
    SETUP
    + """
import sys
results = []  # of the program that waits for the host function
def say_inside():  # when the main thread stays at one instruction
    seen, times = None, 0
    while times < 30:
        frame = sys._current_frames()[threading.main_thread().ident]
        now = id(frame), frame.f_lasti
        seen, times = now, times + 1 if now == seen else 0
        time.sleep(0.01)
    print("inside", flush=True)
def transmission(x):
    say_inside()
    return np.asarray(results[0])
def loops(x):
    say_inside()
    while True:
        pass
def waits_in_c(x):  # for the other end of a named pipe
    say_inside()
    os.close(os.open(pipe, os.O_RDONLY))
    return x
def waits_at_the_second_and_the_tenth(x):
    if calls.append(1) or len(calls) in (2, 10):
        print(f"inside {len(calls)}", flush=True)
        forever(f"{pipe}.{len(calls)}")
    return x
calls = []
lock = threading.Lock()
def waits_for_a_lock(x):
    say_inside()
    with lock:
        return x
def ignores_exceptions(x):
    say_inside()
    while True:
        try:
            time.sleep(0.05)
        except BaseException:
            pass
def uses_jnp(x):
    say_inside()
    return np.asarray(jnp.sin(results[0]))
def waits_behind_its_queue(x):
    say_inside()
    results[0].block_until_ready()
def in_a_thread(host, result, x):
    return jaxcb.pure(host, result=result, executor="threads")(x)
def in_a_process(host, result, x):
    return jaxcb.pure(host, result=result, executor="processes")(x)
def queued_often(host, result, x):
    jaxcb.set_queue_limit(4096)
    def step(_, x):
        jaxcb.debug_callback(host, x, queued=True)
        return x * 0.5
    return jax.lax.fori_loop(0, 1000, step, x)
def run(host, call=jaxcb.pure_callback):
    program = compiled(lambda x: call(host, S, x))
    results[:] = [program(slowly(big))]
    return np.asarray(results[0])  # handles no signals, unlike block_until_ready
doubled = jax.jit(lambda x: x * 2)
def calls_a_jitted_global(x):
    say_inside()
    return np.asarray(doubled(results[0]))
def is_called_by_a_host_function(x):
    with lock:
        return x
other = compiled(lambda x: jax.pure_callback(is_called_by_a_host_function, S, x))
def waits_for_another_callback(x):
    say_inside()
    return np.asarray(other(x))
def begins_a_loop(x):
    threading.Thread(target=say_inside, daemon=True).start()
    return x
@jax.jit
def endless(x):
    jaxcb.debug_callback(lambda x: None, x)
    return jax.lax.while_loop(lambda x: x < 1, lambda x: x * 0.5, x)
def loops_in_machine_code(x):
    while x < 1:
        x = x * np.float32(2)
    return x
def fails_on_one_device(x):
    if x > 0:
        raise ValueError("no luck")
    return x
def summed(x):  # over two devices
    kinds = (jax.sharding.AxisType.Auto,)
    mesh, spec = jax.make_mesh((2,), ("d",), axis_types=kinds), jax.sharding.PartitionSpec("d")
    return jax.shard_map(
        lambda x: jax.lax.psum(jaxcb.pure_callback(fails_on_one_device, S, x[0]), "d")[None],
        mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)(x)
"""
)
IN_MACHINE_CODE = """
program = compiled(jaxcb.pure(loops_in_machine_code, result=S, compile="numba"))
threading.Thread(target=say_inside, daemon=True).start()
program(np.float32(0))
"""
ON_TWO_DEVICES = """import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
"""
AT_ONCE = """
def say_inside():  # the watchdog looks later, when the main thread waits for the program
    while not results:
        time.sleep(0.01)
    print("inside", flush=True)
"""


class Running:
    """A cell that runs, whose messages are read while it does."""

    def __init__(self, kernel, code, cell=None):
        self.kernel, self.text = kernel, ""
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        content["stop_on_error"] = False  # the next cell may come at once
        metadata = {"cellId": cell} if cell else {}
        message = kernel.client.session.msg("execute_request", content, metadata=metadata)
        kernel.client.shell_channel.send(message)
        self.number = message["header"]["msg_id"]

    def read_until(self, words):
        """Read the output of the cell until it has `words`."""
        while words not in self.text:
            self._read()
        return self.text

    def told(self, anything=True):
        """Read until its live view has a notice, or none any more, and return it."""
        deadline = time.monotonic() + 40  # its live view sends messages without end
        while time.monotonic() < deadline:
            content = self._read()
            hang = content.get("data", {}).get("state", {}).get("hang")
            if hang is not None and bool(hang) == anything:
                return hang
        raise AssertionError("the notice has not changed")

    def _read(self):
        message = self.kernel.client.get_iopub_msg(timeout=60)
        content = message["content"]
        if message["parent_header"].get("msg_id") == self.number:
            assert content.get("execution_state") != "idle", self.text
            self.text += content.get("text", "")
        return content
