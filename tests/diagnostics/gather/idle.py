"""Gather from two processes of which process 1 computes nothing.

JAX lets process 0 compute only after both processes have set up their devices. Run by
test_processes.py; each process prints JSON at the end.
"""

import json
import sys

import jax
import numpy as np

import jupyter_jaxcb as jaxcb

double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)


def main():
    index, port, count = map(int, sys.argv[1:])
    jax.distributed.initialize(f"127.0.0.1:{port}", count, index)
    with jaxcb.record() as recorded:
        if index == 0:
            jax.block_until_ready(double(np.float32(1)))
    whole = jaxcb.gather(recorded.recording, timeout=20)
    print(json.dumps([call.process for call in whole]))


if __name__ == "__main__":
    main()
