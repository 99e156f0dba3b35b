"""The referees are all there: `tests/kept.txt` names them, and their table has every case."""

import ast
import re

from tests import kept
from tests.test_layers import MAY_IMPORT


def test_every_row_of_the_list_is_a_folder_a_file_or_a_test_that_exists():
    rows = kept.rows()
    assert rows == sorted(set(rows))
    for row in rows + kept.rows("but "):
        path, _, function = row.partition("::")
        assert (kept.ROOT / path).exists(), row
        assert not function or f"\ndef {function}(" in (kept.ROOT / path).read_text("utf-8"), row


def test_pytest_runs_every_kept_test_with_every_case():
    changed = kept.differences(kept.read(), *kept.collected())
    assert not changed, "accept this by `python -m tests.kept --write`:\n" + "\n".join(changed)


def test_nothing_but_the_marker_long_leaves_tests_out():
    """Those in a browser are run apart, and tests/conftest.py leaves out files without tests."""
    text = "".join((kept.ROOT / name).read_text("utf-8") for name in ("Makefile", "pyproject.toml"))
    assert set(re.findall(r"--(?:ignore|ignore-glob|deselect)[ =](\S+)", text)) == {"tests/browser"}
    confs = [path.read_text("utf-8") for path in kept.ROOT.glob("tests/**/conftest.py")]
    assert re.findall(r"\w*(?:collect_ignore|ignore_collect)\w*", "".join(confs)) == [
        "pytest_ignore_collect"
    ]


INNER = "|".join(MAY_IMPORT.keys() - {"host_callback", "testing.py"})
PRIVATE = re.compile(
    rf"(?<![-\w])(?:jupyter_)?jaxcb\.(?:{INNER})\b(?!\.ResultError)[\w.]*"
    rf"|from jupyter_jaxcb import .*\b(?:{INNER})\b"
    r"|\b(?:jupyter_jaxcb|host_callback|hcb|jaxcb)\._\w+"
)


def kept_code():
    """Yield the kept tests as "file, source": of single ones, what they use of their file."""
    for file, tests in kept.read().items():
        if not file.startswith("tests/"):
            continue
        source = (kept.ROOT / file).read_text("utf-8")
        if kept.is_listed(file) or re.search("^pytestmark.*kept", source, re.MULTILINE):
            yield file, source
        else:
            yield file, used(source, {*tests, "pytestmark"})


def used(source, names):
    """Return the part of a module that `names` use, directly or through others of its names."""
    defined = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in node.names:
                start = f"from {node.module} " if isinstance(node, ast.ImportFrom) else ""
                defined[name.asname or name.name] = f"{start}import {name.name}", ()
            continue
        inside = list(ast.walk(node))
        text = ast.get_source_segment(source, node)
        uses = {one.id for one in inside if isinstance(one, ast.Name)}
        uses |= {one.arg for one in inside if isinstance(one, ast.arg)}  # fixtures
        stores = {one.id for one in inside if isinstance(one, ast.Name) and "Store" in str(one.ctx)}
        for name in {getattr(node, "name", None)} or stores:
            defined[name] = text, uses
    found = set()
    while names:
        found |= names
        names = {use for name in names if name in defined for use in defined[name][1]} - found
    return "\n".join(defined[name][0] for name in found if name in defined)


def helpers():
    """Yield the modules beside and above the listed tests that are no tests, as "file, source"."""
    folders = [kept.ROOT / row for row in kept.rows()]
    paths = {path for folder in folders for path in folder.glob("**/*.py")}
    paths |= {path for row in folders for up in row.parents for path in up.glob("conftest.py")}
    for path in paths:
        if not path.name.startswith("test_"):
            yield path.relative_to(kept.ROOT).as_posix(), path.read_text("utf-8")


def test_kept_tests_use_only_public_names_and_the_interface():
    """A room that is written again changes tests/interface.py, and no kept test."""
    found = {
        f"{file}: {private}"
        for file, source in [*kept_code(), *helpers()]
        for private in PRIVATE.findall(source)
        if file != "tests/test_layers.py"  # it is about folders
    }
    assert not found
