"""Run a script in several processes of one jax.distributed run."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT_SECONDS = 100


def run_in_processes(program, count=2):
    """Run a script of this folder in `count` processes and return the JSON that each prints last.

    Each process gets three arguments: its number, the port, and the number of processes.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(Path(__file__).with_name(program))]
    devices = "--xla_force_host_platform_device_count=2"
    flags = f"{os.environ.get('XLA_FLAGS', '')} {devices}"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as files:
        outputs = [
            files.enter_context(Path(folder, str(number)).open("w+")) for number in range(count)
        ]
        processes = [
            subprocess.Popen(
                [*command, str(number), str(port), str(count)],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
            )
            for number, output in enumerate(outputs)
        ]
        try:
            for process in processes:
                process.wait(LIMIT_SECONDS)
        finally:
            for process in processes:
                process.kill()  # JAX treats SIGTERM as a preemption notice and continues
                process.wait()
        texts = [Path(output.name).read_text() for output in outputs]
    for number, process in enumerate(processes):
        assert process.returncode == 0, f"process {number}:\n{texts[number]}"
    return [json.loads(text.splitlines()[-1]) for text in texts]
