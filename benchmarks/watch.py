"""Find planted NaNs in programs that use public libraries, and measure what watching costs.

    python -m benchmarks.watch [library ...]

Each program of `watched` runs three times: as it is, watched, and under `jax.debug_nans`, which
finds a line if the innermost line of the program in the traceback of its error, or in that of its
cause, is the marked one. It knows no steps and elements. The libraries are those of
`watched/requirements.txt`; without arguments, all of them, and then "loops" and "compiling".
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
ROUNDS = 9
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


def descent(w, m, x):
    """One step of gradient descent with momentum, in eight lines."""
    h = jnp.tanh(x @ w)
    r = h - 0.5 * x
    loss = jnp.mean(r**2)
    slope = x.T @ (r * (1 - h**2))
    m = 0.9 * m + slope
    size = 0.01 / (1 + jnp.linalg.norm(m) + loss)
    w = w - size * m
    return w, m


def scanned(length):
    def run(w, m, x):
        return jax.lax.scan(lambda c, _: (descent(*c, x), None), (w, m), length=length)[0]

    return jax.jit(run)


def counted_loop(length):
    return jax.jit(
        lambda w, m, x: jax.lax.fori_loop(0, length, lambda _, c: descent(*c, x), (w, m))
    )


LOOPS = {"scan": scanned, "fori_loop": counted_loop}
FEATURES = 64
# The number of examples and of steps, with the most that watching may cost.
SIZES = {
    "1 ms": (4500, 100, {"": 1.3, "nan": 1.1}),
    "50 µs": (200, 2000, {"": 2.0, "nan": 1.5}),
}


def seconds(program, given):
    start = time.perf_counter()
    jax.block_until_ready(program(*given))
    jax.effects_barrier()
    return time.perf_counter() - start


def slowdown(program, given, **options):
    """Return the seconds of the program as it is and watched: medians of runs in turn.

    Each run follows one of the same program, which compiles it in the first round.
    """
    plain, with_notes = [], []
    for _ in range(ROUNDS):
        seconds(program, given)
        plain.append(seconds(program, given))
        with jaxcb.watching(**options):
            seconds(program, given)
            with_notes.append(seconds(program, given))
    return statistics.median(plain), statistics.median(with_notes)


def show_loops():
    rng = np.random.default_rng(0)
    for name, (examples, length, goals) in SIZES.items():
        w, x = (rng.normal(size=(n, FEATURES)) / FEATURES for n in (FEATURES, examples))
        given = [jnp.asarray(array, jnp.float32) for array in (w, 0 * w, x)]
        for loop, make in LOOPS.items():
            for first, goal in goals.items():
                plain, watched = slowdown(make(length), given, first=first or None)
                mode = f"first={first!r}" if first else "default"
                print(
                    f"{loop} of {name} steps, {mode}: {watched / plain:.2f} times (goal {goal}), "
                    f"{1e6 * plain / length:.0f} µs a step unwatched",
                    flush=True,
                )


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


OTHERS = {"loops": show_loops, "compiling": show_compiling}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("libraries", nargs="*", choices=[[], *PROGRAMS, *OTHERS])
    parser.add_argument("-v", "--verbose", action="store_true", help="print every first bad value")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # of the libraries, about JAX
    jax.config.update("jax_platforms", "cpu")
    chosen = args.libraries or [*PROGRAMS, *OTHERS]
    libraries = [library for library in chosen if library not in OTHERS]
    if libraries:
        show_plants(libraries, args.verbose)
    for name in OTHERS:
        if name in chosen:
            OTHERS[name]()


if __name__ == "__main__":
    main()
