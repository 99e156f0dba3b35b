"""Measure how long Ctrl-C takes in scripts that hang.

``python -m benchmarks.hangs`` prints a row for each hang of tests/diagnostics/hang,
under the command and in plain Python with a watchdog: the time from the first Ctrl-C to the
sentence that explains the hang, the time from the last Ctrl-C to the end of the process, and how
often Ctrl-C was needed. ``--cores 1`` allows it one core.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import jax

ROOT = str(Path(__file__).resolve().parents[1])
PROGRAM = Path(ROOT, "tests", "diagnostics", "hang", "hanging.py")
HANGS = {  # the arguments of the program: a host function, and how it is called
    "np.asarray of its own program": ("converts_the_result_of_its_program", "jupyter_jaxcb"),
    "jnp": ("uses_jnp", "jupyter_jaxcb"),
    "block_until_ready": ("waits_for_its_program", "jupyter_jaxcb"),
    "a jitted global": ("calls_a_jitted_global", "jupyter_jaxcb"),
    "another callback": ("waits_for_another_callback", "jupyter_jaxcb"),
    "a lock of the main thread": ("waits_for_a_lock", "jupyter_jaxcb"),
    "a function in C that does not return": ("is_in_c", "jupyter_jaxcb"),
    "a function that swallows exceptions": ("ignores_exceptions", "jupyter_jaxcb"),
    "a worker thread in C": ("is_in_c", "threads"),
    "a server, in threads of your own": ("waits_for_a_server", "threads of the user", "in Python"),
    "an endless loop in machine code": ("loops_in_machine_code", "numba", "in Python"),
    "a device that failed before a collective": ("fails_on_one_device", "shards"),
    "a full queue": ("waits_for_the_program_behind_its_queue", "queue"),
}
EXPLAINED = (
    "has not returned",
    "waits in machine code",
    "has not ended",
    "no host call is running",
)
LIMIT_SECONDS = 60.0


class Script:
    """A script that hangs, and the text that it prints."""

    def __init__(self, folder: str, cores: int, plain: bool, arguments: tuple[str, ...]) -> None:
        run = [] if plain else ["-m", "jupyter_jaxcb", "run"]
        how = ["in plain Python"] if plain else []
        path = os.pathsep.join([ROOT, os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [sys.executable, *run, str(PROGRAM), str(cores), *arguments, *how],
            env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": path}, cwd=folder,
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self.text, self._over, self._changed = "", False, threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self.text += line
                self._changed.notify_all()
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def seconds_until(self, *words: str, since: int = 0, limit: float = LIMIT_SECONDS) -> float:
        """Return the time until one of `words` is printed after `since`, or the process ends."""
        begun = time.perf_counter()

        def is_there() -> bool:
            return self._over or any(word in self.text[since:] for word in words)

        with self._changed:
            return time.perf_counter() - begun if self._changed.wait_for(is_there, limit) else -1.0

    def kill(self) -> None:
        """End it with all that it has started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def measure(cores: int, plain: bool, arguments: tuple[str, ...]) -> tuple[float, float, int]:
    """Return the seconds to the explanation and to the end, and how often Ctrl-C was needed."""
    with tempfile.TemporaryDirectory() as folder:
        script = Script(folder, cores, plain, arguments)
        try:
            script.seconds_until("inside")
            time.sleep(2)  # the host call is stuck
            explained, pressed, left = 0.0, 0, -1.0
            while left < 0 and pressed < 4:
                before = len(script.text)
                begun = time.perf_counter()
                script.process.send_signal(signal.SIGINT)
                pressed += 1
                if pressed == 1:
                    explained = script.seconds_until(*EXPLAINED, since=before, limit=10)
                script.seconds_until("Press Ctrl-C again", since=before, limit=3)
                if script._over:
                    script.process.wait()
                    left = time.perf_counter() - begun
            return explained, left, pressed
        finally:
            script.kill()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", type=int, default=2)
    cores = parser.parse_args().cores
    python = ".".join(map(str, sys.version_info[:2]))
    print(f"JAX {jax.__version__}, Python {python}, cores: {cores}")
    print("explained and left in seconds; how often Ctrl-C was pressed\n")
    print(f"{'hang':42}{'run':>18}{'plain, watchdog':>20}")
    for name, arguments in HANGS.items():
        found = [measure(cores, plain, arguments) for plain in (False, True)]
        words = [f"{explained:.2f} {left:.2f} {count}×" for explained, left, count in found]
        print(f"{name:42}{words[0]:>18}{words[1]:>20}", flush=True)


if __name__ == "__main__":
    main()
