"""A program with the persistent compilation cache on, run by test_compilations.py.

It prints a JSON object: whether JAX stores the program with a callback, and the note about it.
"""

import json
import sys
from pathlib import Path

import jax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import summarize


def main(folder):
    if folder:
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)

    def files():
        found = Path(folder or ".").rglob("jit_with_callback*" if folder else "nothing")
        return len([path for path in found if path.name.endswith("-cache")])

    def with_callback(x):
        return double(x) + 1

    def with_unused_callback(x):
        double(x)
        return x - 1

    def without(x):
        return x * 3

    with jaxcb.record() as recorded:
        for f in (without, with_callback, with_unused_callback):
            jax.block_until_ready(jax.jit(f)(2.0))
    others = len([*Path(folder).rglob("jit_without*-cache")]) if folder else 0
    notes = {summary.site.line: list(summary.notes) for summary in summarize(recorded.recording)}
    first = with_callback.__code__.co_firstlineno
    print(
        json.dumps(
            {
                "kept": files(),
                "others": others,
                "called": notes[first + 1],
                "unused": notes[with_unused_callback.__code__.co_firstlineno + 1],
                "flags": {
                    compilation.program.name: compilation.not_cached
                    for compilation in recorded.recording.compilations
                },
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
