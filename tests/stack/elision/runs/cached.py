"""A program with the persistent compilation cache on, run by test_compilations.py.

It prints a JSON object: whether JAX stores the program with a callback, and the note about it.
"""

import json
import sys
from pathlib import Path

import jax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import summarize

double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)
folder = sys.argv[1]


def with_callback(x):
    return double(x) + 1


def with_unused_callback(x):
    double(x)
    return x - 1


def without(x):
    return x * 3


def files(name):
    return len(list(Path(folder).rglob(f"jit_{name}*-cache"))) if folder else 0


if folder:
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
with jaxcb.record() as recorded:
    for f in (without, with_callback, with_unused_callback):
        jax.block_until_ready(jax.jit(f)(2.0))
called, unused = (list(row.notes) for row in summarize(recorded.recording))
flags = {one.program.name: one.not_cached for one in recorded.recording.compilations}
counts = {"kept": files("with_callback"), "others": files("without")}
print(json.dumps({**counts, "called": called, "unused": unused, "flags": flags}))
