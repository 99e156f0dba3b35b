"""Run callbacks without one private name of JAX at a time, and print what they did.

``python tests/upstream/without.py FILE`` takes the names that `private.txt` has first for a file of
`jax_compat`, and hides each in a process of its own, forked before anything of JAX has started.
Without FILE nothing is hidden. It prints a JSON object: what `observe` returns, by name.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.upstream._rename import hide
from tests.upstream.private import Name, names

X = np.float32(0.5)


def observe(kinds: list[Any]) -> dict[str, Any]:
    """Return what each of `kinds` returns, by its name."""
    import jupyter_jaxcb as jaxcb

    found = {}
    for kind in kinds:
        try:
            found[kind.__name__] = kind(jaxcb)
        except Exception as error:
            found[kind.__name__] = f"{type(error).__name__}: {error}"
    return found


def values(jaxcb: Any) -> Any:
    """Every flavor under jit, recorded: the result, and the calls that the recording has."""
    seen: list[float] = []

    def program(x: Any) -> Any:
        jaxcb.debug_callback(lambda x: seen.append(float(x)), x)
        jaxcb.io_callback(lambda x: seen.append(float(x)), None, x + 1)
        return jaxcb.pure_callback(lambda x: x * 2, x, x)

    with jaxcb.record() as r:
        result = float(jax.jit(program)(X))
        jax.effects_barrier()
    return result, sorted(seen), flavors(r.recording)


def vmaps(jaxcb: Any) -> Any:
    counted: list[Any] = []

    @jaxcb.pure(result="x")
    def double(x: Any) -> Any:
        counted.append(x)
        return x * 2

    x = np.arange(3.0, dtype=np.float32)
    result = jax.jit(jax.vmap(double))(x).tolist()
    spec = jax.sharding.PartitionSpec("x")
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    sharded = jax.jit(jax.shard_map(double, mesh=mesh, in_specs=spec, out_specs=spec))(x).tolist()
    return result, sharded, len(counted)


def gradients(jaxcb: Any) -> Any:
    sin = jaxcb.pure(lambda x: np.sin(x), result=lambda x: x)
    sin.defjvp(lambda p, t: (sin(*p), jnp.cos(p[0]) * t[0]))

    def loss(x: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            jaxcb.debug_callback(lambda x: None, carry)
            return sin(carry), None

        return jax.lax.scan(step, x, length=3)[0]

    expected = jax.grad(lambda x: jnp.sin(jnp.sin(jnp.sin(x))))(X)
    return bool(np.isclose(jax.jit(jax.grad(loss))(X), expected))


def orders(jaxcb: Any) -> Any:
    """Ordered calls in a loop, and a tap in the predicate of a vmapped loop."""
    seen: list[float] = []

    def body(i: Any, x: Any) -> Any:
        jaxcb.io_callback(lambda i: seen.append(int(i)), None, i, ordered=True)
        return x + 1

    result = float(jax.jit(lambda x: jax.lax.fori_loop(0, 3, body, x))(X))
    tap = jaxcb.tap(lambda x: None)

    def below(x: Any) -> Any:
        tap(x)
        return x < 3

    loop = jax.jit(jax.vmap(lambda x: jax.lax.while_loop(below, lambda x: x + 2, x)))
    try:
        looped = loop(jnp.array([0.0, 1.0, 2.0])).tolist()
    except NotImplementedError as error:
        looped = str(error)[:40]
    jax.effects_barrier()
    return result, seen, looped


def eager(jaxcb: Any) -> Any:
    key = jax.random.key(0)
    shapes: list[str] = []
    jaxcb.debug_callback(lambda key: shapes.append(str(key.dtype)), key, arrays="jax")
    double = jaxcb.pure(lambda x: x * 2, result=lambda x: x)
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    with jax.set_mesh(mesh):
        under_mesh = float(double(X))
    jax.effects_barrier()
    return float(double(X)), under_mesh, len(shapes)


def statuses(jaxcb: Any) -> Any:
    """A call that is kept, one that is unused, one that XLA removes; later runs."""

    def program(x: Any) -> Any:
        jaxcb.pure_callback(lambda x: x, x, x)
        y = jaxcb.pure_callback(lambda x: x, x, x)
        return jaxcb.pure_callback(lambda x: x + 1, x, x) + jnp.where(False, y, 0)

    f = jax.jit(program)
    with jaxcb.record() as r:
        f(X), f(X)
    with jaxcb.record() as again:
        f(X)
    noted = r.recording.environment.get("statuses", "")
    return rows(jaxcb, r.recording), len(again.recording), noted


def rows(jaxcb: Any, recording: Any) -> list[Any]:
    return sorted((row.status, row.calls) for row in jaxcb.report.summary.summarize(recording))


def explains(jaxcb: Any) -> Any:
    def program(x: Any) -> Any:
        jaxcb.pure_callback(lambda x: x, x, x)
        return jaxcb.pure_callback(lambda x: x + 1, x, x)

    return sorted(one.status for one in jaxcb.explain(program)(X).outcomes)


def hoisting(jaxcb: Any) -> Any:
    def loss(x: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            jaxcb.io_callback(lambda x: None, None, X)
            return carry * 2, None

        return jax.lax.scan(step, x, length=3)[0]

    with jaxcb.record() as r:
        jax.block_until_ready(jax.jit(jax.grad(loss))(X))
        jax.effects_barrier()
    return rows(jaxcb, r.recording)


def cause(jaxcb: Any) -> Any:
    def fails(x: Any) -> Any:
        raise KeyError("no luck")

    try:
        jax.block_until_ready(jax.jit(lambda x: jaxcb.pure_callback(fails, x, x))(X))
    except Exception as error:
        return type(error).__name__, type(error.__cause__).__name__
    return "no error"


def observes(jaxcb: Any) -> Any:
    with jaxcb.record() as r, jaxcb.observe_jax():
        jax.jit(lambda x: jax.pure_callback(lambda x: x, x, x))(X)
    return flavors(r.recording)


def flavors(recording: Any) -> list[str]:
    """Return the flavor of each recorded host call."""
    return sorted(recording.lowered[call.lowered].site.flavor for call in recording)


KINDS = [values, vmaps, gradients, orders, eager, statuses, explains, hoisting, cause, observes]
OF_JAX = ("_builtin_callbacks",)  # what this file uses concerns only JAX's own callbacks


def in_fork(kinds: list[Any], *hidden: Any) -> Any:
    """Return what `observe` returns in a forked process, without a name if one is `hidden`."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        try:
            if hidden:
                hide(*hidden)
            text = json.dumps(observe(kinds))
        except BaseException:
            text = json.dumps(traceback.format_exc().strip().splitlines()[-1])
        os.write(writes, text.encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else "the process ended"


def names_of(file: str) -> dict[str, tuple[Name, str]]:
    """Return the names that are hidden for a file: also the variables of frames, one by one."""
    own = [name for name in names() if name.is_in(jax.__version_info__) and not name.is_compiled]
    return {
        f"{name.path} {variable}".strip(): (name, variable)
        for name in own
        if name.files[0] == file
        for variable in ("", *(name.parameters or ()) * name.is_frame)
    }


def main(file: str = "") -> None:
    """Print what callbacks do without each name of `file`; without FILE, with all names."""
    warnings.simplefilter("ignore")
    found = {
        path: in_fork([values, observes] if name.files == OF_JAX else KINDS, name, *more)
        for path, (name, *more) in names_of(file).items()
    }
    print(json.dumps(found if file else in_fork(KINDS)))


if __name__ == "__main__":
    main(*sys.argv[1:])
