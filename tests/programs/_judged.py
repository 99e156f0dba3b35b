"""Run a program with our callbacks, with JAX's and without JAX, and judge the runs."""

from __future__ import annotations

import dataclasses

import jupyter_jaxcb as jaxcb

from . import _against_jax, _ahead, _meaning, _recorded, _statements
from ._judge import Findings, Judge
from ._program import Program
from ._run import Ran, precision, run_jaxs, run_ours, run_plain


def judged(program: Program, *, explain: bool = True, compare: bool = True) -> tuple[Ran, Findings]:
    """Run a program and return its runs and what is wrong with them.

    Args:
        program: the program.
        explain: also check what `explain` predicts.
        compare: also compare with JAX's own callbacks.
    """
    with precision(program.x64):
        return _judged(program, explain, compare)


def _judged(program: Program, explain: bool, compare: bool) -> tuple[Ran, Findings]:
    ran = run_ours(program, explain=explain)
    judge = Judge(program, ran)
    if refused(ran):
        _refusal(judge)
        return ran, judge.findings
    _recorded.errors(judge)
    _recorded.blocks(judge)
    _recorded.files(judge)
    _statements.statuses(judge)
    _ahead.ahead(judge)
    if program.fail is None and not any(run.error for run in ran.runs):
        _against_text(judge)
    if compare and program.fail is None and not _against_jax.jax_is_wrong(judge):
        _against_jax.against(judge, run_jaxs(program, judge.dropped))
    return ran, judge.findings


def refused(ran: Ran) -> bool:
    """Return whether JAX or the stack, and not a failing host function, refused the program."""
    return any(run.error and jaxcb.host_error(run.error) is None for run in ran.runs)


def _refusal(judge: Judge) -> None:
    """Check that the program is refused with JAX's own callbacks, too."""
    # JAX refuses io callbacks in a vmapped cond and a checkpoint, too, but may drop them before.
    if judge.dropped and any("not supported in" in str(run.error) for run in judge.ran.runs):
        return
    unfailing = dataclasses.replace(judge.program, fail=None)
    theirs = run_jaxs(unfailing)
    if judge.dropped and theirs.runs[0].error is None:
        # JAX may have dropped what it would refuse.
        theirs = run_jaxs(unfailing, judge.dropped)
    _against_jax.against(judge, theirs)
    if theirs.runs[0].error is None:
        _recorded.errors(judge)


def _against_text(judge: Judge) -> None:
    meant = [run_plain(judge.program, value) for value in judge.program.inputs]
    _meaning.meaning(judge, meant)
    if judge.program.blocks != "late":  # elisions of an earlier compilation are not recorded
        for block in judge.ran.blocks:
            _statements.complete(judge, block, meant)
