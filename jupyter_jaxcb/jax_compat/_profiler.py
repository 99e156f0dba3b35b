"""JAX's profiler, without its files, and the compiled programs of the process."""

from __future__ import annotations

import contextlib
import pathlib
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import jax

from ._private import optional_module

_profiler = optional_module("jax._src.profiler")
_backend = optional_module("jax.extend.backend")
_xla_bridge = optional_module("jax._src.xla_bridge")

DURATIONS = {  # events of `jax.monitoring`, and what they measure
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
Report = Callable[[str, str, float], None]

_reports: list[Report] = []  # called with each compilation
_listening: list[bool] = []  # not empty: `_listen` is registered, or will be


def backends_exist() -> bool:
    """Return whether JAX's backends are initialized, without initializing them.

    If a JAX lacks the pieces, this is always true: a profile then initializes the backends, and the
    program cannot choose its devices any more. JAX's lock is not taken, because the thread that
    initializes the backends holds it for long.
    """
    backends = getattr(_xla_bridge, "_backends", None)
    lock = getattr(_xla_bridge, "_backend_lock", None)
    return backends is None or (bool(backends) and not (lock is not None and lock.locked()))


class ProfilerSession:
    """One run of JAX's profiler, from its creation to `stop`. It initializes JAX's backends.

    Since JAX 0.12 this is public API. Before, the data is taken from JAX's session; if a JAX lacks
    that, JAX writes it to a temporary folder, which takes twice as long, and it is read from there.

    Raises:
        RuntimeError: the profiler is running already.
    """

    def __init__(self) -> None:
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0  # events of each Python call would slow the program down
        options.enable_hlo_proto = False  # of every program, also of those that do not run
        self._folder: pathlib.Path | None = None  # JAX creates it if it writes there
        self._session: Any = None
        public = getattr(jax.profiler, "ProfileSession", None)
        if public is not None:
            self._session = public(profiler_options=options).start()
            return
        self._folder = pathlib.Path(tempfile.gettempdir(), f"jaxcb-profile-{uuid.uuid4().hex}")
        jax.profiler.start_trace(self._folder, profiler_options=options)
        self._session = getattr(_state(), "profile_session", None)  # until JAX 0.11

    @property
    def is_running(self) -> bool:
        """Whether no other code has stopped this run, as `jax.profiler.stop_trace` does."""
        if self._folder is None:
            return self._session.is_running
        return self._session is None or _state().profile_session is self._session

    def stop(self) -> Any:
        """Stop the profiler, unless it was stopped; return its `jax.profiler.ProfileData`."""
        if self._folder is None:
            return self._session.stop() if self.is_running else self._session.profile_data
        try:
            return self._data_of_session(self._folder)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _data_of_session(self, folder: pathlib.Path) -> Any:
        stop = getattr(self._session, "stop_and_get_profile_data", None)
        if stop is None:
            if self.is_running:
                jax.profiler.stop_trace()
        else:
            state = _state()
            with state.lock:
                if self.is_running:
                    try:
                        return stop()
                    finally:
                        state.reset()
        (file,) = folder.rglob("*.xplane.pb")
        return jax.profiler.ProfileData.from_file(str(file))


def _state() -> Any:
    return getattr(_profiler, "_profile_state", None)


def modules_of_programs() -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Yield each compiled program that JAX holds: its name, and a function that reads its HLO.

    If a JAX lacks one of the pieces, there are none, and a profile has only XLA's own names.
    """
    backends = getattr(_backend, "backends", None)
    for client in backends().values() if backends is not None else ():
        for executable in getattr(client, "live_executables", list)():
            for module in executable.hlo_modules():
                yield module.name, module.as_serialized_hlo_module_proto


def watch_compilation_times(report: Report) -> None:
    """Report what JAX traces, lowers and compiles, in the thread that does it, when it has ended.

    Args:
        report: called with "trace", "lower" or "compile", the name of the function, and seconds.
    """
    _reports.append(report)
    if not _listening:
        _listening.append(True)
        jax.monitoring.register_event_duration_secs_listener(_listen)


def unwatch_compilation_times(report: Report) -> None:
    """Remove `report`, if `watch_compilation_times` added it."""
    _reports[:] = [one for one in _reports if one != report]
    stop = getattr(jax.monitoring, "unregister_event_duration_listener", None)
    if _listening and not _reports and stop is not None:  # in JAX 0.8 it stays and does nothing
        with contextlib.suppress(AssertionError):  # an interrupt kept it from being registered
            stop(_listen)
        _listening.clear()


def _listen(event: str, duration_secs: float, **kwargs: Any) -> None:
    if event in DURATIONS:
        name = str(kwargs.get("fun_name", ""))
        name = name[4:-1] if name.startswith("jit(") and name.endswith(")") else name
        for report in tuple(_reports):
            report(DURATIONS[event], name, duration_secs)
