"""Test random whole programs: ``python -m tests.programs.fuzz --seed 1 --examples 1000``."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
import traceback
import warnings
from collections import Counter
from importlib.metadata import version

import jax

from ._draw import Draw
from ._judge import Findings
from ._judged import judged
from ._preludes import ours
from ._program import Program
from ._shrink import shrink

QUICK = (
    "--xla_cpu_parallel_codegen_split_count=1 --xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true"
)


def main() -> int:
    options = _options()
    os.environ["XLA_FLAGS"] = _flags(options.devices)
    seed = random.randrange(10**6) if options.seed is None else options.seed
    print(f"{options.examples} programs from seed {seed}", flush=True)
    kinds: Counter[str] = Counter()
    begin = time.monotonic()
    for number in range(seed, seed + options.examples):
        for kind, _ in _one(number, options):
            kinds[kind] += 1
        if number % 50 == 49:
            jax.clear_caches()
        if number % 500 == 499:
            print(f"up to seed {number}", flush=True)
    used = time.monotonic() - begin
    print(f"{options.examples} programs, {options.examples / used:.1f} a second")
    print("findings:", ", ".join(f"{kind} {n}" for kind, n in kinds.most_common()) or "none")
    return 1 if kinds else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, help="seed of the first program (default: random)")
    parser.add_argument("--examples", type=int, default=100, help="number of programs")
    parser.add_argument("--devices", type=int, default=1, help="CPU devices, for shard_map")
    parser.add_argument("--all", action="store_true", help="explain each program, not half")
    parser.add_argument("--show", action="store_true", help="print the programs")
    parser.add_argument("--shrink", action="store_true", help="print a minimal failing program")
    parser.add_argument("--kind", help="the kind of finding to shrink (default: the first)")
    return parser.parse_args()


def _flags(devices: int) -> str:
    """Return flags that make XLA compile small programs two to three times as fast."""
    flags = f"{QUICK} --xla_force_host_platform_device_count={devices}"
    if tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11):
        flags += " --xla_cpu_use_fusion_emitters=false"
    return flags


def _one(number: int, options: argparse.Namespace) -> Findings:
    program = Draw(number, options.devices).program()
    if options.show:
        print(ours(program)[0])
    try:
        _, findings = judged(program, explain=options.all or number % 2 == 0)
    except Exception:
        traceback.print_exc()
        return [("fuzzer", f"seed {number}")]
    for kind, text in findings:
        print(f"seed {number} {_how(program)} {kind}: {text[:700]}", flush=True)
    wanted = [kind for kind, _ in findings if options.kind in (None, kind)]
    if options.shrink and wanted:
        _show_smallest(program, wanted[0])
    return findings


def _how(program: Program) -> str:
    x64 = " x64" * program.x64
    return f"[{program.mode}{x64} {program.blocks} {program.inputs} {program.fail}]"


def _show_smallest(program: Program, kind: str) -> None:
    smallest = shrink(program, lambda candidate: any(k == kind for k, _ in _found(candidate)))
    print(ours(smallest)[0], _how(smallest), sep="\n")
    ran, findings = judged(smallest)
    for found, text in findings:
        print(f"  {found}: {text[:500]}")
    print("calls", *(dict(run.counts) for run in ran.runs))
    print("-- explained", ran.explained, sep="\n")
    for block in ran.blocks:
        print("-- recorded", block.recording, sep="\n")


def _found(candidate: Program) -> Findings:
    """Return the findings of a shrunk program; an invalid program has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return judged(candidate)[1]
    except Exception:
        return []


if __name__ == "__main__":
    sys.exit(main())
