"""The pytest plugin: the fixture ``host_calls``, and tracebacks of failing host functions.

It is a module beside the package because pytest always loads it, and it must not import JAX before
a conftest.py can choose the platform.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from jupyter_jaxcb.testing import HostCalls

_SECTION = "host calls of jupyter_jaxcb"
_HOST_ERROR = "error of a host function"
_RAISED = pytest.StashKey[pytest.ExceptionInfo[Any] | None]()


@pytest.fixture
def host_calls() -> Iterator[HostCalls]:
    """All host calls of the test: ``assert host_calls["bessel"].calls == 3``."""
    from jupyter_jaxcb.testing import host_calls as counting

    with counting() as counted:
        yield counted


def pytest_assertrepr_compare(op: str, left: Any, right: Any) -> list[str] | None:
    """Explain an unexpected count by showing how often each line called."""
    testing = sys.modules.get("jupyter_jaxcb.testing")
    if testing is None:
        return None
    for one in (left, right):
        if isinstance(one, testing.Count):
            return [f"{left} {op} {right}", *one.explained]
    return None


# Not in the wrapper below: pytest's unittest plugin sets the exception in between. The name must
# begin with pytest_, otherwise pytest ignores the hook.
@pytest.hookimpl(specname="pytest_runtest_makereport")
def pytest_show_host_error(item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
    """Show the exception of the host function instead of JAX's error."""
    seen = _as_user_sees(call.excinfo)
    if seen is not None and call.excinfo is not None:
        item.stash[_RAISED] = call.excinfo
        call.excinfo = seen


# trylast: directly around the implementation, so that marks such as xfail see the raised error.
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Restore the raised error; add the host calls to the report of a failing test."""
    item.stash[_RAISED] = None
    try:
        report = yield
    finally:
        raised = item.stash[_RAISED]
        shown, call.excinfo = call.excinfo, raised or call.excinfo
    if raised is not None and shown is not None and raised.value is not shown.value:
        report.sections.append((_HOST_ERROR, _raised_as(raised.type)))
    counted: Any = getattr(item, "funcargs", {}).get("host_calls")
    if report.when == "call" and report.failed and hasattr(counted, "recording"):
        report.sections.append((_SECTION, _report_of(counted)))
    return report


def _raised_as(kind: type[BaseException]) -> str:
    # By its public name: the class itself is named XlaRuntimeError, in a private module.
    name = "jax.errors.JaxRuntimeError" if kind.__name__ != "ValueError" else "ValueError"
    return (
        f"JAX raised this as {name}, which pytest.raises must expect; "
        "jupyter_jaxcb.host_error(error) returns the exception above"
    )


def _as_user_sees(error: pytest.ExceptionInfo[Any] | None) -> pytest.ExceptionInfo[Any] | None:
    stack = sys.modules.get("jupyter_jaxcb.stack")
    if error is None or stack is None:
        return None
    original, frames = stack.error_for_user(error.value, error.tb) or (None, None)
    if not isinstance(original, Exception) or frames is None:
        return None
    return pytest.ExceptionInfo.from_exc_info((type(original), original, frames))


def _report_of(counted: HostCalls) -> str:
    from jupyter_jaxcb.report import to_text

    try:
        return to_text(counted.recording) or "none"
    except Exception as error:  # raised by a program that the test left running
        return f"unknown: {type(error).__name__}: {error}"
