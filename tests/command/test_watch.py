"""``python -m jupyter_jaxcb run --watch`` prints the values of a script."""

import csv
import os
import re
import subprocess
import sys

import pytest

SCRIPT = """\
import jax, jax.numpy as jnp

@jax.jit
def step(w):
    y = jnp.sqrt(w - 1)
    return y * 1.5

w = jnp.array(1.9)
for n in range(20):
    w = step(w)
print("end")
"""
TOLD = "line 5 of step: `jnp.sqrt(w - 1)` gave NaN in step 2, forward; its inputs were finite: "


@pytest.fixture
def run(tmp_path):
    """Return a function that runs the script with options of the command."""
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)

    def command(*options):
        words = [sys.executable, "-m", "jupyter_jaxcb", "run", *options, str(path)]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    return command


def test_values_and_the_first_bad_one_are_printed_at_the_end(run):
    ran = run("--watch")
    assert (ran.returncode, ran.stdout) == (0, "end\n")
    assert re.search(r"^ +5  y +float32\[\] +20 ", ran.stderr, re.M)
    assert re.search(r"^ +10  w +float32\[\] +20 ", ran.stderr, re.M)
    assert TOLD in ran.stderr


def test_stop_ends_the_script_at_its_line(run):
    ran = run("--first", "nan", "--stop")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert f"FloatingPointError: {TOLD}" in ran.stderr
    frames = re.findall(r'File "(.+?)", line', ran.stderr)
    assert [os.path.basename(file) for file in frames] == ["train.py"]


def test_every_sends_fewer_steps_of_a_compiled_loop(run, tmp_path):
    loop = "w, _ = jax.lax.scan(lambda w, _: (step(w) * 0 + 2, None), w, length=20)"
    before, _, _ = SCRIPT.partition("for n")
    (tmp_path / "train.py").write_text(before + loop)
    ran = run("--every", "5")
    assert re.search(r"^ +5  y +float32\[\] +4 ", ran.stderr, re.M)
    assert "every=0 is not a number of steps" in run("--every", "0").stderr


def test_names_choose_and_wrong_options_are_refused_before_the_script_runs(run):
    ran = run("--names", "w")
    assert re.search(r"^ +10  w +float32\[\] +20 ", ran.stderr, re.M)
    assert not re.search(r"^ +5  y ", ran.stderr, re.M)
    refused = run("--first", "x >")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "is not an expression of x that returns one boolean for each value" in refused.stderr


def test_values_are_saved_where_the_command_was_started(run, tmp_path):
    ran = run("--save-values", "values.csv")
    assert "values: " in ran.stderr
    with (tmp_path / "values.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["steps"] for row in rows if row["expression"] == "y"] == [
        f"({n},)" for n in range(20)
    ]
