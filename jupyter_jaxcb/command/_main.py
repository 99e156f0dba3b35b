"""The command line of ``python -m jupyter_jaxcb``."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.metadata
import math
import os
import platform
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

from ..diagnostics import (
    INTERRUPTED,
    CtrlC,
    Record,
    is_off,
    leave_at_next_interrupt,
    observe_jax,
    profile,
    record,
    recording_so_far,
    stacks_of_threads,
    watchdog_and_timer,
)
from ..recording import Recording
from ..report import NOTHING, to_text
from ._export import add_export
from ._print import Parser, say
from ._script import run_module, run_script, without_our_frames
from ._watch import add_watch, enter_watch, report_values

_DESCRIPTION = """\
Run a script as `python script.py` would, and record its JAX callbacks. At its end, print a summary
to stderr and write an interactive page, which opens in any browser without a network. Both are also
written if the script fails; the exit status is that of the script."""

_LONGEST = 500  # characters of a script or its arguments in a file


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status, or raise what the script raised.

    Args:
        arguments: those of the command line, by default of this process.
    """
    options = _parse(arguments)
    return options.perform(options)


def _run(options: argparse.Namespace) -> int:
    parser: argparse.ArgumentParser = options.parser
    script = os.path.basename(options.script)
    name = options.output or f"{script.removesuffix('.py')}.host-trace.html"
    path = os.path.abspath(name)  # the script may change the working directory
    if not options.module and not os.path.isfile(options.script):
        parser.error(f"cannot run {options.script!r}: {_why_not(options.script)}")
    block = contextlib.ExitStack()
    try:
        _check_output(path)
        begin = profile if options.profile else observe_jax if options.jax else record
        if options.stacks_after is not None:
            block.enter_context(watchdog_and_timer(options.stacks_after))
        recorded = block.enter_context(begin())
        seen = enter_watch(block, options)
    except (OSError, ValueError, RuntimeError) as error:
        parser.error(str(error))
    before = _jax_variables()
    run = run_module if options.module else run_script
    about = _about(options)
    with CtrlC(_say, partial(_leave, recorded, path, name, about)):
        ended = _ended(block, partial(run, options.script, options.arguments))
    if ended is not None and not isinstance(ended, SystemExit):
        _show(ended)
    variables = sorted(_jax_variables() - before)
    _report(recorded.recording, path, name, about, variables)
    if seen is not None:
        report_values(seen, options)
    if ended is None:
        return 0
    if isinstance(ended, KeyboardInterrupt):
        leave_at_next_interrupt(_say)
    if not isinstance(ended, SystemExit):
        sys.excepthook = lambda *_: None  # it is shown already; Python sets the exit status
    raise ended


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the arguments; the command is ``perform`` of the result, and its parser ``parser``."""
    parser = Parser(prog="python -m jupyter_jaxcb", allow_abbrev=False)
    commands = parser.add_subparsers(required=True, metavar="{run,export}")
    run = commands.add_parser(
        "run", help="run a script and record it", description=_DESCRIPTION, allow_abbrev=False
    )
    run.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the file to write, by default SCRIPT.host-trace.html; another suffix, such as .jaxcb "
        "or .perfetto.json, selects another format",
    )
    run.add_argument(
        "-m", dest="module", action="store_true", help="SCRIPT is the name of a module"
    )
    of_jax = run.add_mutually_exclusive_group()
    of_jax.add_argument(
        "--no-jax",
        dest="jax",
        action="store_false",
        help="do not record JAX's own callbacks (jax.pure_callback, jax.debug.print, ...)",
    )
    of_jax.add_argument(
        "--profile",
        action="store_true",
        help="also find out where the time went (records JAX's own callbacks too)",
    )
    run.add_argument(
        "--stacks-after",
        type=_seconds,
        metavar="SECONDS",
        help="when no host call has begun or returned for this time, print what the script waits "
        "for and the stacks of all threads",
    )
    add_watch(run)
    run.add_argument("script", metavar="SCRIPT", help="a Python file")
    run.add_argument(
        "arguments", nargs=argparse.REMAINDER, metavar="...", help="arguments of the script"
    )
    run.set_defaults(perform=_run, parser=run)
    add_export(commands)
    return parser.parse_args(arguments)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0; try 30")
    return seconds


def _why_not(script: str) -> str:
    """Return why `script` is no file that can run, and what to write instead."""
    if os.path.isdir(script):
        return "it is a folder. Name a file in it, or run a package with -m."
    if os.path.isfile(f"{script}.py"):
        return f"there is no such file; did you mean {f'{script}.py'!r}?"
    return "there is no such file."


def _check_output(path: str) -> None:
    """Write and delete the file, because a long run must not end with a refusal to write it."""
    Recording().save(path)
    os.unlink(os.path.realpath(path))


def _jax_variables() -> set[str]:
    """Return the ``name=value`` of JAX's variables in the environment."""
    return {f"{name}={value}" for name, value in os.environ.items() if name.startswith("JAX_")}


def _ended(
    block: contextlib.AbstractContextManager[object], run: Callable[[], None]
) -> BaseException | None:
    """Run in `block`, and return the exception that ended it."""
    ended = None
    try:
        with block:
            try:
                run()
            except SystemExit as error:  # not a failure: the block waits for pending host calls
                ended = error
    except BaseException as error:
        ended = error
    return ended


def _say(text: str) -> None:
    say(f"\n{text}", sys.stderr)


def _leave(recorded: Record, path: str, name: str, about: dict[str, str]) -> NoReturn:
    """Report what was recorded, with the stacks of all threads, and end the process.

    Its exit handlers do not run: they would wait for what is stuck.
    """
    try:
        _say(stacks_of_threads())
        _report(recording_so_far(recorded), path, name, about, ())
    finally:
        os._exit(INTERRUPTED)


def _show(error: BaseException) -> None:
    """Write the traceback of an uncaught exception, as Python does."""
    error.__traceback__ = without_our_frames(error.__traceback__)
    sys.excepthook(type(error), error, error.__traceback__)


def _about(options: argparse.Namespace) -> dict[str, str]:
    """Return what a file says about the run: script, arguments, date and versions."""
    # The folder of a script is not in its page.
    name = f"-m {options.script}" if options.module else os.path.basename(options.script)
    command = {"script": name, "arguments": shlex.join(options.arguments)}
    return {
        **{key: words[:_LONGEST] for key, words in command.items() if words},
        "date": time.strftime("%Y-%m-%d %H:%M %z"),
        "python": platform.python_version(),
        "numpy": importlib.metadata.version("numpy"),
    }


def _report(
    recording: Recording, path: str, name: str, about: dict[str, str], variables: Sequence[str]
) -> None:
    say(end="")  # what the script has printed comes first
    environment = {**about, **recording.environment}
    try:
        dataclasses.replace(recording, environment=environment).save(path)
    finally:
        _say(to_text(recording) or NOTHING)
    say(f"host trace: {name}", sys.stderr)
    if is_off():
        say("Nothing was recorded, because of JUPYTER_JAXCB=off.", sys.stderr)
    for variable in variables:
        say(
            f"{variable} had no effect: JAX was imported before the script set it. Set it in the "
            "shell.",
            sys.stderr,
        )
