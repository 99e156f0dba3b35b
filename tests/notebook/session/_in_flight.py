"""What a kernel is given to run programs behind Python's back, and to hold their calls."""

SETUP = """
import os, pathlib, signal, threading, time
import jax, jax.numpy as jnp, numpy as np
import jupyter_jaxcb as jaxcb
S = jax.ShapeDtypeStruct((), np.float32)
big = jnp.ones((800, 800))
slowly = jax.jit(lambda x: (x @ big @ big @ big @ big @ big @ big @ big @ big)[0, 0] * 0)
slowly(big).block_until_ready()
def compiled(f):
    return jax.jit(f).lower(S).compile()
def forever(go_on):  # until the test says so
    deadline = time.monotonic() + 100
    while not os.path.exists(go_on) and time.monotonic() < deadline:
        time.sleep(0.001)
"""


class Cell:
    """The messages of a cell; `act` is called at the first output with the word "inside"."""

    def __init__(self, kernel, code, act):
        self.text, self.error, self.reported, self.shown = "", None, [], []

        def receive(message):
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                self.text += content["text"]
                if "inside" in content["text"] and not self.reported:
                    self.reported.append(1)
                    act()
            elif kind == "error":
                self.error = content
            elif kind in ("display_data", "execute_result"):
                self.shown.append(content["data"])

        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        kernel.ask("execute_request", content, receive)
        self.reply = kernel.client.get_shell_msg(timeout=60)["content"]
