"""``python -m tests.accelerator [GROUP ...]``: runs groups of tests, and prints what came of them.

JAX chooses the device, unless JAX_PLATFORMS does. The exit status is 1 if a test failed.
"""

import os
import subprocess
import sys
import tempfile
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GROUPS = {
    "conformance": ("tests/conformance",),
    "flavors": ("tests/stack/flavors",),
    "lowering": ("tests/stack/lowering",),
    "statuses": ("tests/stack/elision",),
    "queue": ("tests/capabilities/queued",),
    "masks": ("tests/capabilities/masked",),
    "derivatives": ("tests/capabilities/derivatives", "tests/capabilities/linear"),
    "compiled": ("tests/accelerator",),
}
FIGURES = "figures"
DEVICE = (
    "import jax; d = jax.devices(); "
    "print(len(d), 'x', d[0].device_kind, 'as', jax.default_backend(), 'with JAX', jax.__version__)"
)
# Tests of processes and kernels choose their own device.
CHOSEN = "not slow and not long"


def main(names):
    """Run the named groups, or all, and return the exit status."""
    unknown = set(names) - {*GROUPS, FIGURES}
    if unknown:
        raise SystemExit(f"{', '.join(unknown)}: no such group; there are {', '.join(GROUPS)}")
    with tempfile.TemporaryDirectory() as directory:
        environment = environment_in(Path(directory))
        print(python(environment, "-c", DEVICE, stdout=subprocess.PIPE).stdout.strip())
        print(
            "\n| tests | passed | failed | need another package | seconds |\n|---|---|---|---|---|"
        )
        counts = [
            run(name, environment, Path(directory)) for name in GROUPS if name in names or not names
        ]
        if not names or FIGURES in names:
            print("\n| what | speed-up | this package, JAX |\n|---|---|---|", flush=True)
            python(environment, "-m", "tests.accelerator.figures")
    return int(any(counts))


def environment_in(directory):
    """Return the environment of the tests, in which the package counts as installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = directory / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    return {
        **os.environ,
        # Empty: the best device that JAX finds. Without it, conftest.py would choose the CPU.
        "JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", ""),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(directory)]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "JAXCB_TESTS_PLAIN": "1",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }


def python(environment, *arguments, **options):
    """Run Python, and stop with its message if it fails."""
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, check=True, text=True, **options
    )


def run(name, environment, directory):
    """Run one group, print its row and what failed, and return whether something did."""
    results, began = directory / f"{name}.xml", time.monotonic()
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider",
            "-p", "jupyter_jaxcb_pytest", "-p", "tests.accelerator.plugin", "-m", CHOSEN,
            "--junit-xml", str(results), *GROUPS[name],
        ],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if not results.exists():
        raise SystemExit(f"{name}: pytest ended with status {done.returncode}\n{done.stdout}")
    suite = next(ElementTree.parse(results).iter("testsuite")).attrib
    tests, skipped = int(suite["tests"]), int(suite["skipped"])
    failed = int(suite["failures"]) + int(suite["errors"])
    seconds = round(time.monotonic() - began)
    passed = tests - skipped - failed
    print(f"| {name} | {passed:,} | {failed} | {skipped} | {seconds} |", flush=True)
    if done.returncode:
        print(done.stdout, file=sys.stderr)
    return done.returncode != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
