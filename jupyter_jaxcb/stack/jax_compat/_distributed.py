"""The processes of `jax.distributed` and the key-value store they share.

The store belongs to JAX's coordination service, which every distributed run has on every backend.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import jax


class Store:
    """A store of bytes by name, written once by any process and readable by all.

    Args:
        client: the client of the coordination service.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def put(self, name: str, data: bytes) -> None:
        """Write `data`, at most a few megabytes."""
        self._client.key_value_set_bytes(name, data)

    def get(self, name: str, seconds: float) -> bytes | None:
        """Return the data under `name`, waiting up to `seconds` for it; None on timeout."""
        try:
            return self._client.blocking_key_value_get_bytes(name, max(1, int(seconds * 1000)))
        except jax.errors.JaxRuntimeError as error:
            if "DEADLINE_EXCEEDED" in str(error):
                return None
            raise

    def under(self, folder: str) -> dict[str, bytes]:
        """Return everything whose name begins with ``folder/``."""
        return dict(self._client.key_value_dir_get_bytes(f"{folder}/"))

    def delete(self, folder: str) -> None:
        """Delete everything whose name begins with ``folder/``."""
        self._client.key_value_delete(f"{folder}/")


def shared_store() -> Store | None:
    """Return the store of this run; None if there is none, or this JAX hides it.

    `jax._src.distributed.global_state.client` is private; checked in JAX 0.8.0, 0.10.2 and 0.12.0.
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
    """Return this process's number and the number of processes: ``(0, 1)`` if not distributed."""
    if not jax.distributed.is_initialized():
        return 0, 1
    # Not the public jax.process_index(): it waits until all processes have started their backends.
    try:
        from jax._src.distributed import global_state

        return global_state.process_id, global_state.num_processes
    except (ImportError, AttributeError):
        return jax.process_index(), jax.process_count()


def start_backends() -> None:
    """Start the backends of this process in the background.

    The first computation of any process waits until all processes have started their backends. A
    process that computes nothing would block it forever.
    """

    def start() -> None:
        with contextlib.suppress(Exception):  # the computation that needs them raises it
            jax.local_devices()

    threading.Thread(target=start, name="jaxcb-backends", daemon=True).start()


def from_all(data: Any) -> Any:
    """Return the array `data` of every process, stacked; all processes must call this together."""
    from jax.experimental import multihost_utils

    return multihost_utils.process_allgather(data)
