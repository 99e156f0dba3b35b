"""Run the first cells of a new user in a real kernel of this environment."""

from __future__ import annotations

import sys
from typing import Any

from jupyter_client.manager import start_new_kernel

MIME_TYPE = "application/vnd.jupyter-jaxcb.recording.v1+json"
WIDGET = "application/vnd.jupyter.widget-view+json"
SECONDS = 120  # timeout of a cell

LOAD = """
%load_ext jupyter_jaxcb
import jax, jax.numpy as jnp, numpy as np
import jupyter_jaxcb as jaxcb
"""
REGISTER = """%%jax_callback pure --result x --vmap-method expand_dims
def double(x):
    return 2 * x
"""
CALL = "print(jax.jit(jax.vmap(double))(jnp.arange(3.0)))"
VIEW = """
with jaxcb.record() as r:
    double(np.float32(1))
jaxcb.view(r.recording)
"""


def run(client: Any, code: str) -> list[dict[str, Any]]:
    """Run one cell; return its outputs."""
    outputs: list[dict[str, Any]] = []

    def keep(message: dict[str, Any]) -> None:
        if message["msg_type"] in ("stream", "display_data", "execute_result", "error"):
            outputs.append(message["content"])

    reply = client.execute_interactive(code, timeout=SECONDS, output_hook=keep)
    if reply["content"]["status"] != "ok":
        sys.exit(f"{code}\nfailed: {outputs}")
    return outputs


def shown(outputs: list[dict[str, Any]], mime_type: str) -> Any:
    """Return the data of the only output of this type."""
    found = [out["data"][mime_type] for out in outputs if mime_type in out.get("data", {})]
    if len(found) != 1:
        sys.exit(f"{len(found)} outputs are {mime_type}: {outputs}")
    return found[0]


def main() -> None:
    """Load the extension, register a function, and check its host trace."""
    manager, client = start_new_kernel()
    try:
        run(client, LOAD)
        run(client, REGISTER)
        outputs = run(client, CALL)
        printed = "".join(out.get("text", "") for out in outputs)
        if printed != "[0. 2. 4.]\n":
            sys.exit(f"the call printed {printed!r}")
        facts = shown(outputs, MIME_TYPE)
        text = shown(outputs, "text/plain")
        if not text.startswith("double · pure · 1 call · (3,) → (3,)"):
            sys.exit(f"unexpected host trace: {text!r}")
        if "double" not in str(facts):
            sys.exit(f"the trace for the front end has no site: {facts}")
        shown(run(client, VIEW), WIDGET)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    print(text)


if __name__ == "__main__":
    main()
