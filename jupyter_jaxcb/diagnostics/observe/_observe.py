"""observe_jax(): record callbacks made with JAX's own functions."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import threading
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import jax

from ... import jax_compat
from ...capabilities.lint import (
    is_impure,
    users_function,
    warn_of_finished_elements,
    warn_of_impurity,
    warn_of_jax_inside_jaxs_own,
    warn_of_lost_axes,
)
from ...jax_compat import Changes
from ...recording import (
    COMPILED_BEFORE,
    COMPILED_EARLIER,
    DEFAULT_CAPACITY,
    Aval,
    Note,
    Site,
    VmapLevel,
    active,
    method_named,
)
from ...stack import elision
from ...stack.call import (
    ArrayNames,
    Bind,
    Observed,
    ObservedFormat,
    is_held,
    is_observing,
    is_watching,
    note,
    switch,
    to_aval,
    user_function_name,
)
from ...stack.dispatch import RecordedCall, note_call_of, noted
from ...stack.lowering import eager_fact, lowering, note_lowered
from ...stack.trace import (
    Block,
    Frames,
    expect_host_calls,
    find_frames,
    is_cell,
    library_of,
    listener,
    site_of_frames,
)
from ..record import Record, RecordBlock
from ._eager import eager_calls

_UNROLLED = {"jax debug"}  # vmap makes a bind for each batch element
_WITHOUT_HOOK = {"jax buffer"}  # their host calls go through no function that could be patched

_lock = threading.RLock()  # reentrant for the same reason as in `_listening`
_users: set[object] = set()  # blocks of observe_jax(), in any thread, and notebook sessions
_noters: set[object] = set()  # notebook sessions
_tracing, _calling = Changes(), Changes()


def observe_jax(
    capacity: int = DEFAULT_CAPACITY, *, sample_values: bool = True
) -> contextlib.AbstractContextManager[Record]:
    """As `record`, but record JAX's own callbacks too, in your code or in a library.

    These are `jax.pure_callback`, `jax.experimental.io_callback`, `jax.debug.callback`,
    `jax.debug.print` and `jax.experimental.buffer_callback`, recorded with the flavors *jax pure*,
    *jax io*, *jax debug* and *jax buffer*. Their behavior does not change. The patches of JAX apply
    to all threads and are removed at the end of the block; programs compiled inside continue to
    work, unrecorded.

    For a program that was compiled before the block, calls are recorded (except those of buffer
    callbacks), but their lines and elided calls are unknown, unless it was compiled in a notebook
    after ``%load_ext jupyter_jaxcb``. Run it for the first time inside the block, or call
    `jax.clear_caches()`. Sample values are taken only of jupyter_jaxcb's callbacks.

    Blocks may be nested and entered in several threads. With a JAX that is not supported, they
    record only jupyter_jaxcb's callbacks, and a warning says so.

    Args:
        capacity: as for `record`.
        sample_values: as for `record`.

    Returns:
        A context manager that yields a `Record`, as `record`.

    Raises:
        ValueError: as for `record`.
        jax.errors.JaxRuntimeError: as for `record`.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> with jaxcb.observe_jax() as r:
    ...     jax.jit(lambda x: jax.debug.print("x = {}", x))(np.float32(2))
    x = 2.0
    >>> [(f.site.flavor, f.site.function) for f in r.recording.lowered]
    [('jax debug', 'debug.print')]
    """
    return _ObserveBlock(capacity, sample_values)


class _ObserveBlock(Block):
    """The context manager that `observe_jax` returns."""

    def __init__(self, capacity: int, sample_values: bool) -> None:
        self._wanted = capacity, sample_values
        self._recorded = RecordBlock(capacity, sample_values)

    def _recreate_cm(self) -> _ObserveBlock:
        return _ObserveBlock(*self._wanted)

    def begin(self) -> Record:
        start_observing(self)
        return self._recorded.__enter__()

    def leave(self, error: BaseException | None) -> None:
        # Observation ends later, in `end`: calls are still observed while the recording waits.
        self._recorded.leave(error)

    def end(self) -> None:
        self._recorded.end()
        stop_observing(self)


def start_observing(user: object) -> None:
    """Observe JAX's own callbacks from now on, until all users call `stop_observing`."""
    _join(_users, user)


def stop_observing(user: object) -> None:
    """Remove `user`, if present; without users the patches of JAX are removed."""
    _leave(_users, user)


def start_noting(user: object) -> None:
    """Note JAX's own callbacks while they are traced and lowered, until `stop_noting`.

    Their calls are not recorded and cost nothing more. A later observation knows the lines,
    statuses and vmaps of programs compiled since. A note lives as long as its program.
    """
    _join(_noters, user)


def stop_noting(user: object) -> None:
    """Remove `user`, if present; without users the patches of JAX are removed."""
    _leave(_noters, user)


def _join(group: set[object], user: object) -> None:
    if jax_compat.is_on("observation"):
        group.add(user)
        _reconcile()


def _leave(group: set[object], user: object) -> None:
    group.discard(user)
    _reconcile()


def _reconcile() -> None:
    """Install or remove the patches to match the users, whatever was there, as in `_listening`."""
    with _lock:
        if not _users:
            switch(False)
            _calling.revert()
            eager_calls.forget()
        if not (_users or _noters):
            note(False)
            _tracing.revert()
            return
        if not is_watching():
            for flavor, ordered in itertools.product(("io", "debug"), (False, True)):
                jax_compat.jax_effect(flavor, ordered)  # binds a callback of each kind once
            _tracing.revert()  # an interrupt may have left some
            jax_compat.watch_traces(_Watcher(), _tracing)
        note(bool(_noters))
        if not _users:
            return
        if not is_observing():
            _calling.revert()
            jax_compat.watch_calls(_Watcher(), _calling)
            expect_host_calls()
            switch(True)
        recorder = active()
        if recorder is not None:  # it was started before the observation
            elision.watch_own(recorder)


class _Watcher:
    """Receives the events of JAX's own callbacks, see `jax_compat.BuiltinWatcher`."""

    def bound(self, flavor: str, held: Any) -> Any:
        if not is_observing():
            return _note_bind(flavor, held)
        if _is_ours(held):
            return _numbered(held)
        if eager_calls.is_under_way(held):
            return held
        if listener() is None:  # the recording has ended, the observation has not
            return held
        found = find_frames()
        site = found.frames.site(flavor, user_function_name(held))
        bind = Bind(site, found.around, found.in_rule)
        _warn_of_impurity(flavor, held)
        elision.bound(bind, found)
        return _holding(held, bind)

    def batched(
        self, flavor: str, held: Any, method: str, size: int, batched: tuple[bool, ...]
    ) -> Any:
        if not is_held(held):
            return held
        level = VmapLevel(size, method_named(method), batched)
        return held.batched(held.batch.within(level, flavor in _UNROLLED))

    def lowered(
        self, flavor: str, ctx: Any, held: Any, params: dict[str, Any]
    ) -> Callable[[Any], Any] | None:
        if not is_observing():
            return _note_lowering(flavor, ctx, held, params)
        if eager_calls.is_under_way(held):
            return _calling_eagerly(flavor, ctx) if flavor in _WITHOUT_HOOK else None
        if type(held) is RecordedCall or listener() is None:
            return None
        if is_held(held):
            bind, levels, element = held.bind, held.batch.levels, held.batch.element
        else:  # traced before the observation: only JAX's traceback is known
            site = site_of_frames(
                flavor, user_function_name(held), jax_compat.frames_of(ctx.traceback)
            )
            bind, levels, element = Bind(site or _defined(flavor, held)), (), None
        _warn_of_impurity(flavor, held)
        warn_of_lost_axes(bind.site, jax_compat.lost_axes(ctx.avals_in, ctx.avals_out))
        if len(ctx.tokens_in) and jax_compat.lowers_broken_predicate():
            warn_of_finished_elements(bind.site)
        fact = note_lowered(
            ctx, bind, levels, of_jax=True, names=_names(held), note=_lint(ctx, held, bind),
            marks=functools.partial(_marks, flavor, held, bind), **_on_devices(ctx, params),
        )  # fmt: skip
        if fact.results and fact.devices > 1:
            elision.leaves_results_on_one_device(bind.site)

        def make(own: Any) -> RecordedCall:
            return RecordedCall(own.original if type(own) is Observed else own, fact, element)

        return make

    @contextlib.contextmanager
    def eager(self, held: Any, kept: Callable[[Any], Any] | None) -> Iterator[Any]:
        if not is_held(held):
            yield held
            return
        with eager_calls.made(held, kept) as own:
            yield own

    def returned(self, held: Any, results: Any) -> None:
        if is_held(held):
            elision.warn_of_one_device([held.bind.site], [x.sharding for x in results])

    def called(self, flavor: str, callback: Any, operands: Any, results: Any) -> Any:
        if type(callback) is RecordedCall or not is_observing():
            return callback
        known = noted(callback)
        if known is not None:
            return known
        # Eager operands may be Python numbers; those of a program are arrays.
        operands = tuple(to_aval(x if hasattr(x, "shape") else jax.typeof(x)) for x in operands)
        return _noted(flavor, callback, operands, tuple(map(to_aval, results)))


def _note_bind(flavor: str, held: Any) -> Any:
    """Return what a bind should hold while callbacks are only noted: nothing new if it is eager."""
    if not jax_compat.is_staging():
        if not is_held(held):
            return held
        elision.executed(held.bind)
        return held.original
    if _is_ours(held):
        return _numbered(held)
    found = find_frames()
    if "eager" in found.kinds:
        return held
    site = functools.partial(_later, found.frames, flavor, held)
    bind = Bind(site, found.around, found.in_rule)
    elision.bound(bind, found, noted=True)
    return _holding(held, bind)


def _later(frames: Frames, flavor: str, held: Any) -> Site:
    return frames.site(flavor, user_function_name(held))


def _note_lowering(
    flavor: str, ctx: Any, held: Any, params: dict[str, Any]
) -> Callable[[Any], Any] | None:
    """Note the site that calls a callback while callbacks are only noted."""
    if not is_held(held):
        return None
    fact = lowering(
        ctx, held.bind, held.batch.levels, of_jax=True, noted=True, names=_names(held),
        marks=functools.partial(_marks, flavor, held, held.bind), **_on_devices(ctx, params),
    )  # fmt: skip

    def make(own: Any) -> Any:
        original = own.original if type(own) is Observed else own
        if flavor in _WITHOUT_HOOK:
            return RecordedCall(original, fact(), held.batch.element)
        copy = jax_compat.copy_of(original)
        callback = Observed(original, held.bind) if copy is None else copy
        note_call_of(callback, fact, held.batch.element)
        return callback

    return make


def _lint(ctx: Any, held: Any, bind: Bind) -> Note | None:
    """Warn if the host function uses JAX where that can deadlock."""
    function = jax_compat.user_function(held.original if is_held(held) else held)
    if function is None:  # of a print
        return None
    return warn_of_jax_inside_jaxs_own(function, bind.site, ctx.module_context.platforms[0])


def _users_function(held: Any) -> Any:
    """Return the user's function that a callback calls; None if it is a library's, or unknown."""
    function = jax_compat.user_function(held.original if is_held(held) else held)
    with contextlib.suppress(Exception):  # a callable may raise anything when it is examined
        return None if function is None else users_function(function)
    return None


def _warn_of_impurity(flavor: str, held: Any) -> None:
    if flavor == "jax pure":
        function = _users_function(held)
        if function is not None:
            warn_of_impurity(function, flavor)


def _marks(flavor: str, held: Any, bind: Bind) -> dict[str, Any]:
    """Return whether a pure callback has side effects, or the library that makes the call."""
    function = _users_function(held)
    if function is not None:
        return {"impure": flavor == "jax pure" and is_impure(function)}
    caller = next(iter(bind.site.callers), None)
    return {"library": library_of(caller.file)} if caller and caller.library else {}


def _on_devices(ctx: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Return how often the devices make a call, and whether they gather its operands."""
    everywhere, groups = params.get("partitioned", False), jax_compat.group_count(ctx)
    called = jax_compat.times_called(ctx, everywhere=everywhere, sharding=params.get("sharding"))
    gathered = jax_compat.device_count(ctx) > 1 and not everywhere
    return {"times": max(called, groups) if groups > 1 else called, "gathered": gathered}


def _holding(held: Any, bind: Bind) -> Any:
    return ObservedFormat.of(held, bind) if issubclass(type(held), str) else Observed(held, bind)


def _is_ours(held: Any) -> bool:
    return is_held(held) or type(held) is RecordedCall


def _numbered(held: Any) -> Any:
    """Return `held` for the bind of one batch element, if vmap makes one for each."""
    if not is_held(held) or held.batch.numbers is None:
        return held
    return held.batched(held.batch.numbered())


def _noted(
    flavor: str, callback: Any, operands: tuple[Aval, ...], results: tuple[Aval, ...]
) -> RecordedCall:
    """Return a recorded replacement for `callback`, for a call without an observed lowering."""
    own, held = callback, None
    if type(callback) is Observed:  # debug: no eager call encloses the host call
        elision.executed(callback.bind)
        own, held = callback.original, callback
    else:
        held = eager_calls.held_by(callback)
    names = _names(own)
    if held is None:
        bind = Bind(_defined(flavor, own))
        return RecordedCall(own, eager_fact(bind, operands, results, (), names=names))
    fact = eager_fact(held.bind, operands, results, held.batch.levels, names=names)
    return RecordedCall(own, fact, held.batch.element)


def _names(held: Any) -> ArrayNames | None:
    """Return the names of the arrays of a pure or io callback; None for other flavors."""
    found = jax_compat.user_arguments(held.original if type(held) is Observed else held)
    return None if found is None else ArrayNames(*found)


def _calling_eagerly(flavor: str, ctx: Any) -> Callable[[Any], Callable[..., Any]]:
    """Return a function that wraps the callback of a program run by successive eager calls.

    For flavors in `_WITHOUT_HOOK`.
    """
    operands, results = tuple(map(to_aval, ctx.avals_in)), tuple(map(to_aval, ctx.avals_out))

    def make(own: Any) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            called = _noted(flavor, own, operands, results) if is_observing() else own
            return called(*args, **kwargs)

        return call

    return make


def _defined(flavor: str, held: Any) -> Site:
    """Return a site for a bind that was not observed: the definition of the host function."""
    code, name = None, user_function_name(held)
    with contextlib.suppress(Exception):  # a callable without code may raise anything
        function = jax_compat.without_partials(jax_compat.user_function(held))
        code = getattr(inspect.unwrap(function), "__code__", None)
    if type(code) is CodeType:
        file, line = code.co_filename, code.co_firstlineno
        return Site(flavor, name, file, line, 0, is_cell(file), f"{name}, {COMPILED_BEFORE}")
    return Site(flavor, name, COMPILED_EARLIER, 0, 0, False)
