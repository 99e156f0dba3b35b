"""What kept tests use of the package besides its public names.

Kept tests import only this, `jupyter_jaxcb`, `jupyter_jaxcb.host_callback` and
`jupyter_jaxcb.testing` (tests/test_kept.py), so that they stay as they are while rooms of the
package are written again: whoever moves or renames one of these things changes this module alone.
Private modules are imported where they are needed, by functions that say what they do.
"""

import contextlib

from jupyter_jaxcb import jax_compat as _jax_compat
from jupyter_jaxcb.command import main
from jupyter_jaxcb.diagnostics import (
    HangKind,
    Watchdog,
    all_running_calls,
    running_calls,
    start_noting,
    start_observing,
    stop_noting,
    stop_observing,
)
from jupyter_jaxcb.jax_compat import host_function_can_block
from jupyter_jaxcb.recording import (
    FORMATS,
    VMAP_METHODS,
    WHOLE_BATCH,
    Aval,
    Check,
    Checks,
    Compilation,
    Finding,
    Frame,
    Html,
    JaxUse,
    Lane,
    LoweredSite,
    MaskUse,
    Matrix,
    Note,
    NoteKind,
    NotFinite,
    NotKept,
    ObjectUse,
    Outcome,
    Part,
    PartKind,
    Profile,
    Program,
    QueueUse,
    Reason,
    Recorder,
    Recording,
    RecordingFileError,
    Running,
    Site,
    Status,
    VmapLevel,
    Worker,
    active,
    between,
    element,
    html,
    load,
    on_one_line,
    record_call,
    record_elements,
    spreadsheet_cell,
    visible,
)
from jupyter_jaxcb.recording._facts import ROW
from jupyter_jaxcb.report import (
    MIME_TYPE,
    Progress,
    SiteProgress,
    advice_words,
    causes_of,
    check_output,
    cost_to_text,
    export,
    finished,
    headline,
    matrix_output,
    matrix_to_text,
    outcome_to_text,
    summarize,
    to_html,
    to_message,
    to_mimebundle,
    to_text,
    unfinished,
)
from jupyter_jaxcb.report.frontend import to_page
from jupyter_jaxcb.report.text import time_split, to_markdown
from jupyter_jaxcb.stack import (
    ResultError,
    cell_begins,
    cell_ends,
    error_for_user,
    leave_loops_to_jax,
    spent_in_blocks,
    stop_attaching_causes,
)
from jupyter_jaxcb.stack.call import empty_aligned


def line_values():
    """Return the classes of the values beside lines, and of the cells that they belong to."""
    from jupyter_jaxcb.notebook.display import LineValues, Origins

    return LineValues, Origins


def result_checker(name, tree, shapes, dtypes, **options):
    """Return the function that checks and converts what a host function returns, to arrays."""
    from jupyter_jaxcb.stack.results._checker import result_checker as of

    return of(name, tree, shapes, dtypes, **options)


def annotated_result(function):
    """Return the declared result of a function with jaxtyping's annotations; None without."""
    from jupyter_jaxcb.stack.results._annotations import annotated_result as of

    return of(function)


def printed_layout(value):
    """Return how `host_callback.id_print` lays out a value."""
    from jupyter_jaxcb.host_callback._print import layout

    return layout(value)


def stop_button():
    """Return what a notebook's session uses to stop a cell: `begin`, then `close`."""
    from jupyter_jaxcb.notebook.session._stop_button import Stop

    return Stop((lambda: None).__code__, lambda hang: None)


def wait_for_queued_calls(look):
    """Wait for queued calls as `jax.effects_barrier` does, and call `look` now and then."""
    from jupyter_jaxcb.capabilities import queue

    queue.wait(look)


def queue_limit_bytes():
    """Return the limit that `set_queue_limit` set last."""
    from jupyter_jaxcb.capabilities import queue

    return queue.limit_bytes


def leave_barriers_to_jax():
    """From now on, `jax.effects_barrier` does not know the queue, as in a JAX without the hook."""
    _jax_compat.after_barriers = lambda wait, settle: None


def leave_calls_to_jax(monkeypatch):
    """Programs cannot stay in Python, as in a JAX that is not supported."""
    monkeypatch.setattr(_jax_compat, "missing", lambda subject: "name")


def give_up_waiting_after(seconds):
    """Change how long an error waits for the other devices of its program."""
    from jupyter_jaxcb.stack.errors import _causes

    _causes.PATIENCE_SECONDS = seconds


def forget_that_jax_lowered(monkeypatch):
    """Nothing has been lowered, as in a new process."""
    monkeypatch.setattr("jupyter_jaxcb.stack.trace._listener._any_lowered", False)


def forget_effects():
    """Make the effects of JAX's callbacks anew, as in a new process."""
    _jax_compat.jax_effect.cache_clear()


def remember_few_eager_calls(monkeypatch, most):
    """Lower the number of eager calls of JAX's own callbacks whose lines are remembered."""
    monkeypatch.setattr("jupyter_jaxcb.diagnostics.observe._eager.MAX_LATEST", most)


def forget_warnings_of_lint(monkeypatch):
    """Warn of each function again."""
    monkeypatch.setattr("jupyter_jaxcb.capabilities.lint._effects._warned", {})


def noted():
    """Return what is kept of noted callbacks: an entry for each, and two for each program."""
    from jupyter_jaxcb.stack.dispatch import _observed_call
    from jupyter_jaxcb.stack.elision import _programs

    memory = _programs._memory
    kept = {"calls": _observed_call._notes, "noted": memory._noted, "counted": memory._counted}
    return {(name, key) for name, keys in kept.items() for key in list(keys)}


def programs_to_wait_for():
    """Return the programs of this process whose calls a cell waits for."""
    from jupyter_jaxcb.stack.elision import _programs

    return set(_programs._uncounted)


def recorded_call(function, site):
    """Return `function`, recorded at a call site, as a program of JAX's callbacks holds it."""
    from jupyter_jaxcb.stack.dispatch._observed_call import RecordedCall

    return RecordedCall(function, LoweredSite(site, None, -1, (), ()))


def kept_errors():
    """Return the exceptions that are kept for `host_error`, by number: the thread of each."""
    from jupyter_jaxcb.stack.errors import _store

    assert _store._kept.keys() == _store._raised_by.keys()
    return dict(_store._raised_by)


def added_name(name):
    """Return the name of an operand that a capability adds to those of the user."""
    from jupyter_jaxcb.stack.call import AddedName

    return AddedName(name)


def running_cells():
    """Return the cells that run now, by what their definitions are bound to."""
    from jupyter_jaxcb.stack.call import _late_binding

    return _late_binding._cells.running


def set_clock_of_cells(clock):
    """Give the cells that wait for host calls another module `time`."""
    from jupyter_jaxcb.notebook.session import _cell_barrier
    from jupyter_jaxcb.stack.interrupt import _in_flight

    _cell_barrier.time = _in_flight.time = clock


def wait_of_a_cell(calls):
    """Wait for host calls as a cell does at its end."""
    from jupyter_jaxcb.notebook.session._cell_barrier import wait_for_calls

    return wait_for_calls(calls, 60, lambda: False)


@contextlib.contextmanager
def waits_of_cells():
    """Give a list, to which each cell adds that waits for a program."""
    from jupyter_jaxcb.notebook.session import _cell_barrier

    waits, wait = [], _cell_barrier.Unfinished.wait
    _cell_barrier.Unfinished.wait = lambda *args: (waits.append(1), wait(*args))[1]
    try:
        yield waits
    finally:
        _cell_barrier.Unfinished.wait = wait
