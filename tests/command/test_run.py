"""``python -m jupyter_jaxcb run``: a script runs as with ``python``, and leaves a host trace."""

import json
import os
import signal
import subprocess
import sys

import pytest

import jupyter_jaxcb as jaxcb

pytestmark = pytest.mark.slow

CALLS = """
import jax, jax.numpy as jnp, numpy as np
def host(x):
    return np.asarray(x) + 1
result = jax.ShapeDtypeStruct((), "float32")
print(jax.jit(lambda x: jax.pure_callback(host, result, x))(jnp.float32(1)))
"""
ABOUT = """
import json, os, sys
import __main__
about = [__name__, __file__, sys.argv, sys.path[0], os.getcwd(), __spec__ is None]
def f(x: int): pass
print(json.dumps([*about, __main__.about is about, str(f.__annotations__)]))
"""
FAILS = """
@jaxcb.pure(result="x")
def bad(x):
    raise ValueError("no luck")
jax.jit(bad)(1.0)
"""


@pytest.fixture
def run(in_process, tmp_path):
    """``run(source, *arguments)`` runs a script under the command, in an empty folder."""

    def with_command(source, *arguments, before=(), plain=False, **more):
        (tmp_path / "script.py").write_text(source)
        command = ["script.py"] if plain else ["-m", "jupyter_jaxcb", "run", *before, "script.py"]
        return in_process(command, *arguments, cwd=tmp_path, **more)

    return with_command


def test_script_sees_what_it_sees_under_python(run):
    done, plain = (run(ABOUT, "-o", "--", "x", plain=plain) for plain in (False, True))
    assert json.loads(done.stdout) == json.loads(plain.stdout)
    assert json.loads(done.stdout)[2] == ["script.py", "-o", "--", "x"]


def test_callbacks_of_jax_are_recorded_in_a_page_and_in_the_summary_on_stderr(run, tmp_path):
    done = run(CALLS)
    assert done.stdout == "2.0\n"
    assert "host · jax pure · 1 call · () → ()" in done.stderr
    assert "host trace: script.host-trace.html" in done.stderr
    assert "script.py:6" in (tmp_path / "script.host-trace.html").read_text()


def test_output_selects_the_format_and_a_file_in_the_folder_where_the_command_began(run, tmp_path):
    run(f"{CALLS}\nimport os; os.chdir('/')", before=["-o", "run.jaxcb"])
    assert len(jaxcb.load(tmp_path / "run.jaxcb")) == 1
    assert not list(tmp_path.glob("*.html"))


def test_callbacks_of_jax_are_left_alone_on_request(run):
    done = run(CALLS, before=["--no-jax"])
    assert (done.stdout, "1 callback of JAX not recorded" in done.stderr) == ("2.0\n", True)


def test_module_runs_with_its_package(in_process, tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text("from . import __name__ as above\nprint(above, __name__)")
    command = ["-m", "jupyter_jaxcb", "run", "-m", f"{package.name}.part"]
    done = in_process(command, cwd=tmp_path)
    assert done.stdout == "package __main__\n"
    assert (tmp_path / "package.part.host-trace.html").exists()


@pytest.mark.long
@pytest.mark.parametrize(
    "end",
    [
        "raise ValueError('no luck')",
        "import sys; sys.exit(7)",
        "import sys; sys.exit('no luck')",
        "raise KeyboardInterrupt",
        "x = (",
    ],
)
def test_exit_status_and_traceback_are_those_of_python(run, end, tmp_path):
    done, plain = (run(end, plain=plain, status=None) for plain in (False, True))
    assert done.returncode == plain.returncode != 0
    page = "\nno host calls, and no callbacks in the compiled programs\n"
    page += "host trace: script.host-trace.html\n"
    assert done.stderr.replace(page, "") == plain.stderr
    assert (tmp_path / "script.host-trace.html").exists()


def test_host_calls_before_a_failure_are_recorded(run):
    done = run(f"{CALLS}\n1 / 0", status=1)
    assert done.stderr.index("ZeroDivisionError") < done.stderr.index("1 call · () → ()")


PENDING = """
import sys
import jax, jax.numpy as jnp, numpy as np
m = jnp.ones((1500, 1500))
g = jax.jit(lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), "float32"), x))
g(jax.jit(lambda m: (m @ m @ m @ m)[0, 0] * 0)(m))
sys.exit(3)
"""


def test_host_calls_that_are_pending_at_sys_exit_are_recorded(run):
    done = run(PENDING, status=3)
    assert "1 call · () → ()" in done.stderr


def test_interrupt_of_a_running_script_leaves_a_page(run, tmp_path):
    (tmp_path / "script.py").write_text(
        f"{CALLS}\nprint('waits', flush=True)\nimport time; time.sleep(600)"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "jupyter_jaxcb", "run", "script.py"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert [process.stdout.readline() for _ in range(2)] == ["2.0\n", "waits\n"]
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == -signal.SIGINT
    assert "host · jax pure · 1 call" in errors
    assert (tmp_path / "script.host-trace.html").exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.py"], "cannot run 'missing.py': there is no such file."),
        (["script"], "cannot run 'script': there is no such file; did you mean 'script.py'?"),
        (["."], "cannot run '.': it is a folder. Name a file in it, or run a package with -m."),
        (["-o", "run.xyz", "script.py"], "unknown file format: 'run.xyz'"),
        (["-o", "no/run.html", "script.py"], "No such file or directory: "),
        (["--prof", "script.py"], "unrecognized arguments: --prof"),
    ],
)
def test_command_that_cannot_work_is_refused_before_the_script_runs(
    in_process, tmp_path, arguments, words
):
    (tmp_path / "script.py").write_text("print('ran')")
    done = in_process(["-m", "jupyter_jaxcb", "run", *arguments], cwd=tmp_path, status=2)
    assert (done.stdout, words in done.stderr) == ("", True)


@pytest.mark.long
def test_profile_says_where_the_time_of_the_script_went(run, tmp_path):
    done = run(CALLS, before=["--profile", "-o", "run.jaxcb"])
    assert done.stdout == "2.0\n"
    assert "% compilation" in done.stderr
    recording = jaxcb.load(tmp_path / "run.jaxcb")
    assert sum(part.wall_ns for part in recording.profile.parts) == recording.profile.wall_ns


STUCK = """
import sys, threading
import jax, jax.numpy as jnp, numpy as np
printed = threading.Event()
def host(x):
    if not printed.is_set():
        sum(range(2 * 10**8))  # holds the GIL
    printed.wait()
    return np.asarray(x)
class Stderr:
    def write(self, text):
        sys.__stderr__.write(text)
        if "host (jax pure, script.py" in text:
            printed.set()
    flush = sys.__stderr__.flush
sys.stderr = Stderr()
result = jax.ShapeDtypeStruct((), "float32")
jax.jit(lambda x: jax.pure_callback(host, result, x))(jnp.float32(1)).block_until_ready()
"""


@pytest.mark.long
def test_stacks_are_printed_while_no_call_returns_also_while_the_gil_is_held(run):
    done = run(STUCK, before=["--stacks-after", "0.2"])
    assert "Timeout (0:00:00.400000)!" in done.stderr
    assert "line 7 in host" in done.stderr
    assert "No host call has begun or returned for" in done.stderr
    assert "The host calls go on." not in done.stderr.partition("No host call")[0]


@pytest.mark.kept
def test_name_of_a_script_writes_nothing_to_the_terminal(in_process, tmp_path):
    name = "e\x1b[2Jvil\u202e.py"
    (tmp_path / name).write_text(f"{CALLS}import jupyter_jaxcb as jaxcb\n{FAILS}")
    done = in_process(["-m", "jupyter_jaxcb", "run", name, "\x1b[31m"], cwd=tmp_path, status=1)
    assert r"e\x1b[2Jvil\u202e.py:6" in done.stderr
    assert r"bad, bound at e\x1b[2Jvil\u202e.py:12, in call 1" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr and "\u202e" not in done.stdout + done.stderr
    assert "\x1b" not in (tmp_path / f"{name[:-3]}.host-trace.html").read_text()
