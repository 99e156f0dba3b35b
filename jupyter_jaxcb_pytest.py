"""The pytest plugin: the fixture ``host_calls``, and failing host functions at the user's lines.

A module beside the package: pytest loads it wherever the package is installed, and it must not
import JAX before a conftest.py can say on which platform that is to run.
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
    """Every host call of the test: ``assert host_calls["bessel"].calls == 3``."""
    from jupyter_jaxcb.testing import host_calls as counting

    with counting() as counted:
        yield counted


def pytest_assertrepr_compare(op: str, left: Any, right: Any) -> list[str] | None:
    """A count that is not as expected says which line called how often."""
    testing = sys.modules.get("jupyter_jaxcb.testing")
    if testing is None:
        return None
    for one in (left, right):
        if isinstance(one, testing.Count):
            return [f"{left} {op} {right}", *one.explained]
    return None


# Not in the wrapper below: pytest's plugin for unittest says what was raised in between. Its name
# begins with pytest_, or pytest would not look at it.
@pytest.hookimpl(specname="pytest_runtest_makereport")
def pytest_show_host_error(item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
    """A failing host function is shown in place of JAX's error."""
    seen = _as_user_sees(call.excinfo)
    if seen is not None and call.excinfo is not None:
        item.stash[_RAISED] = call.excinfo
        call.excinfo = seen


# trylast: next to what makes the report, so that marks such as xfail see what was raised.
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What was raised is put back; a failing test that counts shows calls."""
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
        report.sections.append((_SECTION, _told(counted)))
    return report


def _raised_as(kind: type[BaseException]) -> str:
    # By the name it is imported by: JAX's says XlaRuntimeError and where it is made.
    name = "jax.errors.JaxRuntimeError" if kind.__name__ != "ValueError" else "ValueError"
    return (
        f"JAX raised this as {name}, which is what pytest.raises has to expect; "
        "jupyter_jaxcb.host_error(error) finds the exception above in it"
    )


def _as_user_sees(error: pytest.ExceptionInfo[Any] | None) -> pytest.ExceptionInfo[Any] | None:
    stack = sys.modules.get("jupyter_jaxcb.stack")
    if error is None or stack is None:
        return None
    original, frames = stack.error_for_user(error.value, error.tb) or (None, None)
    if not isinstance(original, Exception) or frames is None:
        return None
    return pytest.ExceptionInfo.from_exc_info((type(original), original, frames))


def _told(counted: HostCalls) -> str:
    from jupyter_jaxcb.report import to_text

    try:
        return to_text(counted.recording) or "none"
    except Exception as error:  # of a program that the test left running
        return f"cannot tell: {type(error).__name__}: {error}"
