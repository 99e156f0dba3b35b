"""The processes of `jax.distributed`, and the store that they share.

The store is that of JAX's coordination service, which every such run has, whatever it computes on.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import jax


class Store:
    """Bytes by name, which any of the processes writes once and all can read.

    Args:
        client: of the coordination service.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def put(self, name: str, data: bytes) -> None:
        """Writes; at most a few megabytes."""
        self._client.key_value_set_bytes(name, data)

    def get(self, name: str, seconds: float) -> bytes | None:
        """What is, or within that time will be, written there; else None."""
        try:
            return self._client.blocking_key_value_get_bytes(name, max(1, int(seconds * 1000)))
        except jax.errors.JaxRuntimeError as error:
            if "DEADLINE_EXCEEDED" in str(error):
                return None
            raise

    def under(self, folder: str) -> dict[str, bytes]:
        """Everything whose name begins with ``folder/``."""
        return dict(self._client.key_value_dir_get_bytes(f"{folder}/"))

    def delete(self, folder: str) -> None:
        """Forgets everything whose name begins with ``folder/``."""
        self._client.key_value_delete(f"{folder}/")


def shared_store() -> Store | None:
    """The store of this run; None where JAX has none that we know.

    `jax._src.distributed.global_state.client` is private: seen in JAX 0.8.0, 0.10.2 and 0.12.0.
    """
    try:
        from jax._src.distributed import global_state

        client = global_state.client
    except (ImportError, AttributeError):
        return None
    needed = (
        "key_value_set_bytes",
        "blocking_key_value_get_bytes",
        "key_value_dir_get_bytes",
        "key_value_delete",
    )
    return Store(client) if all(hasattr(client, name) for name in needed) else None


def process_number() -> tuple[int, int]:
    """Which process this is, and of how many: 0 of 1 without `jax.distributed`."""
    if not jax.distributed.is_initialized():
        return 0, 1
    # Public, jax.process_index() would wait for the backends of all processes to start.
    try:
        from jax._src.distributed import global_state

        return global_state.process_id, global_state.num_processes
    except (ImportError, AttributeError):
        return jax.process_index(), jax.process_count()


def start_backends() -> None:
    """Starts those of this process, if that has not been done, and does not wait for it.

    The first computation of a process waits until all processes have started theirs: one that has
    nothing to compute would keep it from ever coming to its end.
    """

    def start() -> None:
        with contextlib.suppress(Exception):  # told by the computation that needs them
            jax.local_devices()

    threading.Thread(target=start, name="jaxcb-backends", daemon=True).start()


def from_all(data: Any) -> Any:
    """The array `data` of each process, by process: a computation that all of them take part in."""
    from jax.experimental import multihost_utils

    return multihost_utils.process_allgather(data)
