"""Code and messages of cells whose programs run asynchronously and whose host calls block."""

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
def forever(go_on):  # until the test creates the file
    deadline = time.monotonic() + 100
    while not os.path.exists(go_on) and time.monotonic() < deadline:
        time.sleep(0.01)
"""


class Cell:
    """Runs a cell and keeps its messages; calls `act` when the cell first prints `word`."""

    def __init__(self, kernel, code, act, word="inside"):
        self.text, self.error, self.shown = "", None, []
        acted = []

        def receive(message):
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                self.text += content["text"]
                if word in self.text and not acted:
                    acted.append(True)
                    act()
            elif kind == "error":
                self.error = content
            elif kind in ("display_data", "execute_result"):
                self.shown.append(content["data"])

        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        kernel.request("execute_request", content, receive)
        self.reply = kernel.client.get_shell_msg(timeout=60)["content"]
