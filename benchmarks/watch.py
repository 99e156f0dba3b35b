"""Find planted NaNs in programs that use public libraries, and time how watched ones compile.

    python -m benchmarks.watch [library ...]

Each program of `watched` runs three times: as it is, watched, and under `jax.debug_nans`, which
finds a line if the innermost line of the program in the traceback of its error, or in that of its
cause, is the marked one. It knows no steps and elements. The libraries are those of
`watched/requirements.txt`; without arguments, all of them, and then "compiling".
"""

import argparse
import collections
import contextlib
import importlib.metadata
import statistics
import time
import traceback
import warnings

import jax
import jax.numpy as jnp
import numpy as np

import jupyter_jaxcb as jaxcb

from .watched import PROGRAMS, plants_of

COLUMNS = ("planted", "line", "and step", "debug_nans: line", "and step", "bitwise equal")
COMPILED = 4


def results_of(plant):
    """Return the bytes of all results; every NaN is the same.

    Some libraries raise an error if a result is NaN.
    """
    try:
        return [bytes_of(leaf) for leaf in jax.tree.leaves(plant.run())]
    except jax.errors.JaxRuntimeError:
        return "raised"


def bytes_of(leaf):
    if not hasattr(leaf, "dtype"):
        return leaf
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    array = np.array(leaf)
    if np.issubdtype(array.dtype, np.inexact):
        array[np.isnan(array)] = np.nan
    return array.dtype, array.shape, array.tobytes()


def watched(plant):
    """Return the first bad value, and all results."""
    with jaxcb.watching(first="nan") as seen:
        results = results_of(plant)
    return seen.first_bad, results


def is_right(bad, plant):
    """Return whether line and direction are right, and whether step and element are too."""
    if bad is None:
        return False, False
    line = bad.line in plant.lines and bad.file == plant.run.__code__.co_filename
    line = line and bad.direction == plant.direction
    return line, line and plant.has_steps(bad.steps) and bad.element == plant.element


def lines_of_debug_nans(plant):
    """Return the innermost lines of the program in JAX's error and its causes."""
    try:
        with jax.debug_nans(True):
            jax.block_until_ready(plant.run())
    except (FloatingPointError, jax.errors.JaxRuntimeError) as error:
        return {*innermost_lines(error, plant.run.__code__.co_filename)}
    return set()


def innermost_lines(error, file):
    while error is not None:
        frames = traceback.walk_tb(error.__traceback__)
        yield from [line for frame, line in frames if frame.f_code.co_filename == file][-1:]
        error = error.__cause__ or error.__context__


def counted(library, is_verbose):
    """Return what was right in the program that uses `library`."""
    right = collections.Counter()
    for plant in plants_of(library):
        plain = results_of(plant)
        bad, results = watched(plant)
        line, all_of_it = is_right(bad, plant)
        theirs = lines_of_debug_nans(plant)
        their_line = bool(theirs & plant.lines)
        right["planted"] += 1
        right["line"] += line
        right["step"] += all_of_it
        right["their line"] += their_line
        right["their step"] += their_line and not plant.steps and not plant.element
        right["equal"] += results == plain
        if is_verbose or not all_of_it:
            word = "right" if all_of_it else "WRONG"
            print(f"  {library}, {plant.run.__name__}: {word}: {bad}; debug_nans: {theirs}")
    return right


def show_plants(libraries, is_verbose):
    """Print a row for each library, and their sum."""
    total = collections.Counter()
    print(f"{'':24}" + "".join(f"{column:>18}" for column in COLUMNS))
    for library in libraries:
        found = counted(library, is_verbose)
        total += found
        show_row(f"{library} {importlib.metadata.version(library)}", found)
    show_row("all", total)


def show_row(name, found):
    keys = ("planted", "line", "step", "their line", "their step", "equal")
    print(f"{name:24}" + "".join(f"{found[key]:18}" for key in keys), flush=True)


def training_step():
    """Return a function to compile, and its arguments: a network of equinox, learned by Adam."""
    import equinox as eqx
    import optax

    optimizer = optax.adam(1e-3)
    arrays, rest = eqx.partition(eqx.nn.MLP(8, 1, 32, 2, key=jax.random.key(0)), eqx.is_array)

    def loss(arrays, x, y):
        predicted = jax.vmap(eqx.combine(arrays, rest))(x)
        return jnp.mean((predicted - y) ** 2)

    def step(arrays, state, x, y):
        value, slopes = jax.value_and_grad(loss)(arrays, x, y)
        updates, state = optimizer.update(slopes, state, arrays)
        return eqx.apply_updates(arrays, updates), state, value

    return step, (arrays, optimizer.init(arrays), jnp.ones((64, 8)), jnp.ones((64, 1)))


def seconds_to_compile():
    step, given = training_step()
    start = time.perf_counter()
    lowered = jax.jit(step).lower(*given)
    lowered.compile()
    return time.perf_counter() - start


def show_compiling():
    """Print how long a step takes to compile: medians of compilations in turn."""
    ways = {"as it is": None, "all variables": {}, "only the first NaN": {"first": "nan"}}
    took = {way: [] for way in ways}
    for _ in range(1 + COMPILED):  # the first one is slower
        for way, options in ways.items():
            with contextlib.nullcontext() if options is None else jaxcb.watching(**options):
                took[way].append(seconds_to_compile())
    for way, each in took.items():
        print(f"a step compiles in {statistics.median(each[1:]):.2f} s, {way}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("libraries", nargs="*", choices=[[], *PROGRAMS, "compiling"])
    parser.add_argument("-v", "--verbose", action="store_true", help="print every first bad value")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # of the libraries, about JAX
    jax.config.update("jax_platforms", "cpu")
    chosen = args.libraries or [*PROGRAMS, "compiling"]
    libraries = [library for library in chosen if library != "compiling"]
    if libraries:
        show_plants(libraries, args.verbose)
    if "compiling" in chosen:
        show_compiling()


if __name__ == "__main__":
    main()
