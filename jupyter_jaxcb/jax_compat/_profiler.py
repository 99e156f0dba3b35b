"""One run of JAX's profiler: a public session since JAX 0.12, and a private one before."""

from __future__ import annotations

import pathlib
import shutil
import tempfile
import uuid
from typing import Any

import jax

from ._subjects import module


class ProfilerSession:
    """One run of JAX's profiler, from its creation to `stop`. It initializes JAX's backends.

    Raises:
        RuntimeError: the profiler is running already.
    """

    def __init__(self) -> None:
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0  # events of each Python call would slow the program down
        options.enable_hlo_proto = False  # of every program, also of those that do not run
        self._session: Any
        self._state: Any = None  # JAX's, until 0.11
        if jax.__version_info__ >= (0, 12):
            profiler: Any = jax.profiler
            self._session = profiler.ProfileSession(profiler_options=options).start()
            return
        # JAX writes there if other code stops the profiler.
        self._folder = pathlib.Path(tempfile.gettempdir(), f"jaxcb-profile-{uuid.uuid4().hex}")
        jax.profiler.start_trace(self._folder, profiler_options=options)
        self._state = module("profiler")._profile_state
        self._session = self._state.profile_session

    @property
    def is_running(self) -> bool:
        """Whether no other code has stopped this run, as `jax.profiler.stop_trace` does."""
        if self._state is None:
            return self._session.is_running
        return self._state.profile_session is self._session

    def stop(self) -> Any:
        """Stop the profiler, unless it was stopped; return its `jax.profiler.ProfileData`."""
        if self._state is None:
            return self._session.stop() if self.is_running else self._session.profile_data
        try:
            with self._state.lock:
                if self.is_running:
                    try:
                        return self._session.stop_and_get_profile_data()
                    finally:
                        self._state.reset()
            (file,) = self._folder.rglob("*.xplane.pb")
            return jax.profiler.ProfileData.from_file(str(file))
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
