"""Migrating Python files: listing uses of host_callback, and rewriting only names of the module."""

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb import migrate
from jupyter_jaxcb.command import main

OLD = "from jax.experimental import host_callback as hcb"
NEW = "from jupyter_jaxcb import host_callback as hcb"
X = jnp.arange(3.0)


@pytest.fixture
def file(tmp_path):
    """Write a module with ``file(text)``, which returns its path."""

    def write(text, name="model.py", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write


IMPORTS = {
    "module": (OLD, NEW),
    "without an alias": (
        "from jax.experimental import host_callback",
        "from jupyter_jaxcb import host_callback",
    ),
    "comment and blanks": (
        "from  jax.experimental\timport  ( host_callback as hcb, )  # keep",
        "from  jupyter_jaxcb\timport  ( host_callback as hcb, )  # keep",
    ),
    "continued line": (
        "from jax . experimental \\\n  import host_callback",
        "from jupyter_jaxcb \\\n  import host_callback",
    ),
    "names from the module": (
        "from jax.experimental.host_callback import id_tap, call as c  # x",
        "from jupyter_jaxcb.host_callback import id_tap, call as c  # x",
    ),
    "star import": (
        "from jax.experimental.host_callback import *",
        "from jupyter_jaxcb.host_callback import *",
    ),
    "import as": (
        "import jax.experimental.host_callback as h",
        "import jupyter_jaxcb.host_callback as h",
    ),
    "import as, among others": (
        "import numpy as np, jax.experimental.host_callback as h, os",
        "import numpy as np, jupyter_jaxcb.host_callback as h, os",
    ),
    "first of several": (
        "from jax.experimental import host_callback as hcb, maps",
        "from jupyter_jaxcb import host_callback as hcb\nfrom jax.experimental import maps",
    ),
    "last of several, indented, Windows": (
        "if x:\r\n    from jax.experimental import (\r\n        maps,  # m\r\n"
        "        host_callback,\r\n    )\r\n",
        "if x:\r\n    from jupyter_jaxcb import host_callback\r\n"
        "    from jax.experimental import (\r\n        maps,\r\n    )\r\n",
    ),
    "not alone on its line": (
        "x = 1; from jax.experimental import maps, host_callback; y = 2",
        "x = 1; from jupyter_jaxcb import host_callback; from jax.experimental import maps; y = 2",
    ),
    "dotted": (
        "import jax\nimport jax.experimental.host_callback\n"
        "jax.experimental.host_callback.id_tap(f, jax.numpy.ones(3))",
        "import jax\nimport jupyter_jaxcb.host_callback\n"
        "jupyter_jaxcb.host_callback.id_tap(f, jax.numpy.ones(3))",
    ),
    "dotted, and binds jax": (
        "import jax.experimental.host_callback\n"
        "jax.experimental.host_callback.id_print(jax.numpy.ones(3))",
        "import jax.experimental, jupyter_jaxcb.host_callback\n"
        "jupyter_jaxcb.host_callback.id_print(jax.numpy.ones(3))",
    ),
    "dotted, imported elsewhere": (
        "def f():\n    import jax\n    return jax.experimental.host_callback.id_print(1)\n",
        "def f():\n    import jax\n    import jupyter_jaxcb.host_callback\n"
        "    return jupyter_jaxcb.host_callback.id_print(1)\n",
    ),
    "with a fallback": (
        f"try:\n  {OLD}\nexcept ImportError:\n  hcb = None\n",
        f"try:\n  {NEW}\nexcept ImportError:\n  hcb = None\n",
    ),
    "twice": (
        f"{OLD}\ndef f():\n    {OLD}; return hcb\n",
        f"{NEW}\ndef f():\n    {NEW}; return hcb\n",
    ),
}


@pytest.mark.parametrize(("old", "new"), IMPORTS.values(), ids=IMPORTS)
def test_import_is_rewritten(file, old, new):
    path = file(old)
    source = migrate.read(path)
    assert path.read_bytes().decode() == old  # reading changes nothing
    assert source.write()
    assert path.read_bytes().decode() == new
    compile(new, "new", "exec")
    assert not migrate.read(path).write()


LEFT = {
    "another module": "from jax.experimental import io_callback",
    "another package": "from haiku.experimental import host_callback",
    "a relative import": "from .jax.experimental import host_callback",
    "the new module": NEW,
    "text": f's = "{OLD}"  # {OLD}',
    "nothing": "",
}


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_other_text_is_not_rewritten(file, text):
    source = migrate.read(file(text))
    assert not source.write()
    assert migrate.report(source) == f"{source.path}: no use of host_callback"


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ("# -*- coding: latin-1 -*-\n", "latin-1"),
        ("", "utf-8-sig"),
        ("\x0c\n", "utf-8"),
        ("é = 'é'; ", "utf-8"),
        ("x = 1\r\n\r", "utf-8"),
        ("x = '\\d'\n", "utf-8"),
    ],
)
def test_every_other_byte_is_kept(file, head, encoding):
    text = "{head}{line}  # é\r\nif x:\n\ty = 'ü'; jax . experimental\n"
    path = file(text.format(head=head, line=OLD), encoding=encoding)
    migrate.read(path).write()
    assert path.read_bytes() == text.format(head=head, line=NEW).encode(encoding)


USES = f"""\
import jax
{OLD}
y = hcb.id_tap(f, x)
hcb.id_tap(f, x, result=z)
y = hcb.id_tap(f, x, result=z)
hcb.id_print((x,
    1), what="w", threshold=3)
z = hcb.call(np.sin, x, result_shape=x)
hcb.barrier_wait("name")
hcb.stop_outfeed_receiver()
jax.config.update("jax_host_callback_inline", True)
flavor = hcb.CallbackFlavor.PURE
try: pass
except hcb.CallbackException: pass
hcb.outside_call_p
tap = hcb.id_tap
g(hcb)
"""
EXPECTED = [
    (2, "import", f"write: {NEW}"),
    (3, "id_tap", "jaxcb.debug_callback(f, x, ordered=True), and continue with x"),
    (4, "id_tap", "jaxcb.debug_callback(f, x, ordered=True)"),
    (5, "id_tap", "jaxcb.debug_callback(f, x, ordered=True), and continue with z"),
    (6, "id_print", 'jaxcb.debug_print("what={what} {}", (x, 1), what="w", ordered=True)'),
    (8, "call", "jaxcb.io_callback(np.sin, x, x, ordered=True); if np.sin is pure: "
        "jaxcb.pure_callback(np.sin, x, x)"),
    (9, "barrier_wait", "keep it with taps: only it raises their errors; else write: "
        "jax.effects_barrier()"),
    (10, "stop_outfeed_receiver", "jax.effects_barrier()"),
    (11, "option", 'write: hcb.flags.update("jax_host_callback_inline", True)'),
    (12, "CallbackFlavor", "remove it"),
    (14, "CallbackException", "keep it"),
    (15, "outside_call_p", "remove it"),
    (16, "id_tap", "keep it"),
    (17, "host_callback", "keep it"),
]  # fmt: skip


def test_each_use_is_listed_with_its_replacement(file):
    source = migrate.read(file(USES))
    first, *lines = migrate.report(source).splitlines()
    assert first == f"{source.path}: 14 uses of host_callback"
    assert len(lines) == 2 * len(EXPECTED)
    for index, (line, what, words) in enumerate(EXPECTED):
        assert lines[2 * index].startswith(f"  line {line}: {what}: ")
        assert words in lines[2 * index + 1]


PROPOSED = {
    "unused transforms": (
        "hcb.id_tap(lambda a, t: print(a), x)",
        "debug_callback(lambda a: print(a), x, ordered=True), and continue with x",
    ),
    "used transforms": (
        "hcb.id_tap(lambda a, t: print(a, t), x)",
        "keep it, or write: jaxcb.tap(lambda a, t: print(a, t))(x)",
    ),
    "a default": ("hcb.id_tap(lambda a, t=1: a, x)", "debug_callback(lambda a, t=1: a, x,"),
    "the device of a tap": (
        "hcb.id_tap(f, x, tap_with_device=True)",
        "; the function gets no device: ask jaxcb.call_info().device",
    ),
    "the device of a call": (
        "hcb.call(f, x, result_shape=x, call_with_device=True)",
        "; the function gets no device: ask jaxcb.call_info().device",
    ),
    "the device of a print": (
        "hcb.id_print(x, tap_with_device=True)",
        "; the device is not printed",
    ),
    "keywords": ("hcb.id_print(x, **kw)", "a field and a keyword for each item of kw"),
    "a number": (
        "hcb.call(f, x, result_shape=1.0)",
        "io_callback(f, jnp.asarray(1.0), x, ordered=True)",
    ),
    "numbers": (
        "hcb.call(f, x, result_shape=(1.0, x))",
        "io_callback(f, jax.tree.map(jnp.asarray, (1.0, x)), x, ordered=True)",
    ),
}


@pytest.mark.parametrize(("text", "words"), PROPOSED.values(), ids=PROPOSED)
def test_proposal_depends_on_the_arguments(file, text, words):
    assert words in migrate.report(migrate.read(file(f"{OLD}\ny = {text}")))


def test_call_without_a_result_is_not_proposed_as_pure(file):
    """XLA would remove it."""
    report = migrate.report(migrate.read(file(f"{OLD}\nhcb.call(f, x)")))
    assert report.endswith("keep it, or write: jaxcb.io_callback(f, None, x, ordered=True)")


def test_proposals_for_numbers_and_devices_run():
    jaxcb.io_callback(lambda x: x, jnp.asarray(1.0), 2.0, ordered=True)
    jaxcb.io_callback(lambda x: (0, x), jax.tree.map(jnp.asarray, (1.0, X)), X, ordered=True)
    devices = []
    jaxcb.debug_callback(lambda x: devices.append(jaxcb.call_info().device), X)
    assert devices == [""]


def test_uses_of_our_module_are_listed_too(file):
    source = migrate.read(file(f"{NEW}\nhcb.id_print(x)\nhcb.flags.update('raise_at_once', True)"))
    first, second, _, third, _ = migrate.report(source).splitlines()
    assert first == f"{source.path}: 2 uses of host_callback"
    assert "line 2: id_print" in second
    assert "line 3: flags" in third
    assert not source.write()


OPTIONS = {
    "hcb": (f"{OLD}\n", "write: hcb.flags.update("),
    "our hcb": (f"{NEW}\n", "write: hcb.flags.update("),
    "another name": (
        "from jax.experimental.host_callback import id_tap\n",
        "write: host_callback.flags.update(",
    ),
}


@pytest.mark.parametrize(("head", "words"), OPTIONS.values(), ids=OPTIONS)
def test_option_is_proposed_under_the_name_of_the_module(file, head, words):
    option = 'jax.config.update("jax_host_callback_inline", False)'
    report = migrate.report(migrate.read(file(head + option)))
    assert f'{words}"jax_host_callback_inline", False)' in report
    assert ("after from jupyter_jaxcb import host_callback" in report) == ("hcb" not in words)


STRINGS = {
    "import": 'importlib.import_module("jax.experimental.host_callback")',
    "patch": 'mock.patch("jax.experimental.host_callback.id_tap")',
    "hasattr": 'hasattr(jax.experimental, "host_callback")',
    "option": 'setattr(jax.config, "jax_host_callback_inline", True)',
}


@pytest.mark.parametrize("text", STRINGS.values(), ids=STRINGS)
def test_string_that_names_the_module_is_listed_and_not_rewritten(file, text, capsys):
    path = file(f"{OLD}\nx = {text}\n")
    assert main(["migrate", "--write", str(path)]) == 0
    out = capsys.readouterr().out
    assert "  line 2: in a string: " in out
    assert f"{path}: rewritten; not rewritten: line 2 (in a string)\n" in out
    assert path.read_text() == f"{NEW}\nx = {text}\n"


def test_option_is_not_rewritten_which_the_command_says(file, capsys):
    option = 'jax.config.update("jax_host_callback_inline", False)\n'
    path = file(f"{OLD}\n{option}jax.config.jax_host_callback_outfeed = True\n")
    assert main(["migrate", "--write", str(path)]) == 0
    out = capsys.readouterr().out
    assert "      write: hcb.flags.jax_host_callback_outfeed\n" in out
    assert f"{path}: rewritten; not rewritten: line 2 (option), line 3 (option)\n" in out
    assert option in path.read_text()


def test_docstring_is_not_a_use(file):
    source = migrate.read(file('"""As jax.experimental.host_callback.id_tap."""'))
    assert migrate.report(source).endswith("no use of host_callback")


def test_notes_come_once_at_the_end(file, capsys):
    text = f"{OLD}\nhcb.id_tap(f, x)\nhcb.id_tap(g, x)\n"
    assert main(["migrate", str(file(text)), str(file(text, "other.py"))]) == 0
    out = capsys.readouterr().out
    assert out.count("gets no transforms") == 1
    assert out.count("more than") + out.count("over several devices") == 1
    assert out.splitlines()[-2].startswith("id_tap: ")


ALIASES = {
    "h": "import jax.experimental.host_callback as h\nh.id_tap(f, x)",
    "tap": "from jax.experimental.host_callback import id_tap as tap\ntap(f, x)",
    "dotted": "import jax\njax.experimental.host_callback.id_tap(f, x)",
    "package": "from jax import experimental as e\ne.host_callback.id_tap(f, x)",
    "inside": "def g():\n  from jax.experimental import host_callback\n"
    "  return lambda x: host_callback.id_tap(f, x)",
}


@pytest.mark.parametrize("text", ALIASES.values(), ids=ALIASES)
def test_use_is_found_under_any_name(file, text):
    uses = [use for part in migrate.read(file(text)).parts for use in part.uses()]
    assert "id_tap" in [use.what for use in uses]


BROKEN = {
    "syntax": ("def f(:\n", "line 1: invalid syntax"),
    "null byte": ("x = 1\0", "null byte"),
    "encoding": ("# coding: nowhere\n", "unknown encoding"),
}


@pytest.mark.parametrize(("text", "words"), BROKEN.values(), ids=BROKEN)
def test_file_that_is_not_python_is_refused(file, text, words):
    path = file(text)
    with pytest.raises(migrate.MigrationError, match="cannot read") as caught:
        migrate.read(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)


def test_bytes_that_are_not_text_are_refused(tmp_path):
    path = tmp_path / "model.py"
    path.write_bytes(b"x = '\xff\xfe'\n")
    with pytest.raises(migrate.MigrationError, match=r"model\.py"):
        migrate.read(path)


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(migrate.MigrationError, match=r"cannot read .*gone\.py: No such file"):
        migrate.read(tmp_path / "gone.py")
    with pytest.raises(migrate.MigrationError, match="directory"):
        migrate.read(tmp_path)


def test_file_that_cannot_be_written_is_reported(file, monkeypatch):
    path = file(OLD)
    source = migrate.read(path)

    def refuse(path, data):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.write_bytes", refuse)
    with pytest.raises(migrate.MigrationError, match=r"cannot write .*model\.py: Permission"):
        source.write()


def test_command_continues_after_a_broken_file(file, capsys):
    good, bad = file(f"{OLD}\n"), file("def f(:\n", "bad.py")
    assert main(["migrate", str(bad), str(good)]) == 1
    out, err = capsys.readouterr()
    assert f"{good}: 1 use of host_callback" in out
    assert str(bad) in err
    assert good.read_text() == f"{OLD}\n"


def test_command_rewrites_with_the_option_write(file, capsys):
    path, other = file(f"{OLD}\n"), file("x = 1\n", "other.py")
    assert main(["migrate", "--write", str(path), str(other)]) == 0
    assert path.read_text() == f"{NEW}\n"
    out = capsys.readouterr().out
    assert f"{path}: rewritten" in out
    assert f"{other}: nothing to rewrite" in out


def test_command_reads_folders(tmp_path, capsys):
    for name in ("a.py", "b.py", "sub/c.ipynb", ".hidden/d.py", "sub/.ipynb_checkpoints/c.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(f"{OLD}\n")
    (tmp_path / "sub/c.ipynb").write_text('{"cells": [{"cell_type": "code", "source": "x"}]}')
    (tmp_path / "b.py").write_text("x = 1\n")
    assert main(["migrate", "--write", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path}/a.py: 1 use of host_callback",
        f"  line 1: import: {OLD}",
        f"      write: {NEW}",
        f"{tmp_path}/a.py: rewritten",
        f"{tmp_path}: 3 files, 1 with uses of host_callback",
    ]
    assert (tmp_path / ".hidden/d.py").read_text() == f"{OLD}\n"


def test_folder_with_one_file_is_counted_in_the_singular(file, capsys):
    folder = file("x = 1\n").parent
    assert main(["migrate", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder}: 1 file, 0 with uses of host_callback\n"


def test_command_runs_in_a_process(file, in_process):
    command = ["-m", "jupyter_jaxcb", "migrate"]
    done = in_process(command, file(f"{OLD}\n"))
    assert done.stderr == ""
    assert f"write: {NEW}" in done.stdout
    assert "required: FILE" in in_process(command, status=2).stderr


def test_all_files_are_rewritten_for_a_reader_that_leaves(file, without_reader):
    paths = [file(f"{OLD}\n", name) for name in ("a.py", "b.py")]
    done = without_reader("migrate", "--write", *paths)
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.read_text() for path in paths] == [f"{NEW}\n"] * 2
