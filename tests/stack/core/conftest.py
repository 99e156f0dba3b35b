"""Modules that run again."""

import importlib
import sys

import pytest


@pytest.fixture
def module(tmp_path, monkeypatch):
    """``module(source)`` writes the module, and imports it, or reloads it."""
    monkeypatch.syspath_prepend(tmp_path)
    name = "a_module_that_changes"

    def write(source):
        # Of another size each time: else the byte code of the second before is taken.
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
