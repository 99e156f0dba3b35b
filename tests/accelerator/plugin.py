"""A pytest plugin: what `tests/accelerator` does not need cannot be imported.

A test that needs more is skipped with the name of the package, and `__main__.py` counts it.
"""

import sys

import pytest

from tests import _front_end_rules

# Packages of the extras and of Jupyter that some tests, or the package, import when needed.
NOT_THERE = frozenset(
    "IPython anywidget cffi comm dask distributed equinox ipyparallel ipywidgets jaxtyping joblib"
    " jsonschema lineax loky nbclient nbformat pandas traitlets xxhash".split()
)


class Bare:
    """Finds none of these packages."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in NOT_THERE:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def pytest_configure(config):
    """Hide the packages, and leave the front end out: its rules need a package."""
    sys.meta_path.insert(0, Bare())
    _front_end_rules.check = lambda recording: None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Report a test that needs such a package as skipped."""
    report = yield
    package = missing(call.excinfo.value) if call.excinfo else ""
    if package:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1], f"needs {package}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Report a file that needs such a package as skipped."""
    report = yield
    package = missing(report.call.excinfo.value) if report.call.excinfo else ""
    if package:
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 0, f"needs {package}")
    return report


def missing(error):
    """Return the package of NOT_THERE that an exception is about, or ""."""
    while error is not None:
        name = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
        if name and name.partition(".")[0] in NOT_THERE:
            return name.partition(".")[0]
        error = error.__cause__ or error.__context__
    return ""
