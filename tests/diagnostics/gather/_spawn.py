"""A program in several processes of one jax.distributed run."""

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
    """What each process prints last, as JSON; each gets its number, the port and how many."""
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    place = Path(__file__).with_name(program)
    command = [sys.executable, str(place)]
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
                process.kill()  # JAX takes a SIGTERM for a preemption, and goes on
                process.wait()
        texts = [Path(output.name).read_text() for output in outputs]
    for number, process in enumerate(processes):
        assert process.returncode == 0, f"process {number}:\n{texts[number]}"
    return [json.loads(text.splitlines()[-1]) for text in texts]
