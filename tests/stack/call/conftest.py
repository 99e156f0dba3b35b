"""A fixture for modules that tests write and reload."""

import importlib
import sys

import pytest


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Return ``module(source)``, which writes the module and imports or reloads it."""
    monkeypatch.syspath_prepend(tmp_path)
    name = "a_module_that_changes"

    def write(source):
        # No .pyc: Python would use it for a file of equal size written within the same second.
        (tmp_path / f"{name}.py").write_text(f"import jupyter_jaxcb as jaxcb\n{source}\n")
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        try:
            known = sys.modules.get(name)
            importlib.invalidate_caches()
            return importlib.import_module(name) if known is None else importlib.reload(known)
        finally:
            sys.dont_write_bytecode = before

    yield write
    sys.modules.pop(name, None)
