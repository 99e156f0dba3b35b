"""Partitioned callbacks in programs over four devices; prints results and calls as JSON."""

import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import jupyter_jaxcb as jaxcb

P = PartitionSpec
AUTO, EXPLICIT = (
    jax.make_mesh((4,), ("d",), axis_types=(kind,)) for kind in (AxisType.Auto, AxisType.Explicit)
)
SQUARE = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
TYPED = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Explicit,) * 2)
calls: list = []


def note(*arrays):
    info = jaxcb.call_info()
    calls.append([info.shard, info.device, *(list(array.shape) for array in arrays)])


def pure_or_io(flavor, **options):
    def double(x):
        note(x)
        return 2 * x

    return getattr(jaxcb, flavor)(double, result="x", partitioned=True, **options)


def spread(array, mesh=AUTO, spec=P("d")):  # noqa: B008
    return jax.device_put(array, NamedSharding(mesh, spec))


def outcome(program, *arguments):
    """The result, how it is spread, and the calls in the order of the shards."""
    calls.clear()
    try:
        result = jax.block_until_ready(program(*arguments))
        jax.effects_barrier()
    except Exception as error:
        original = jaxcb.host_error(error) or error
        return {"error": f"{type(original).__name__}: {original}"}
    return {
        "result": np.asarray(result).tolist(),
        "spec": str(getattr(result.sharding, "spec", None)),
        "calls": sorted(calls, key=str),
    }


def of_flavor(flavor):
    double, numbers = pure_or_io(flavor), spread(jnp.arange(8.0))
    in_columns = jax.vmap(double, in_axes=1, out_axes=1)
    across = jax.shard_map(double, mesh=AUTO, in_specs=P("d"), out_specs=P("d"))
    yield "jit", (jax.jit(double), numbers)
    yield "eager", (double, numbers)
    yield "on what XLA computed", (jax.jit(lambda x: double(x + 1) - 2), numbers)
    yield "unused", (jax.jit(lambda x: (double(x), x)[1]), numbers)
    yield (
        "scan",
        (
            jax.jit(lambda x: jax.lax.scan(lambda c, _: (double(c), None), x, None, length=2)[0]),
            numbers,
        ),
    )
    yield "vmap", (jax.jit(in_columns), spread(jnp.arange(16.0).reshape(8, 2)))
    yield "not spread", (jax.jit(double), spread(jnp.arange(8.0), spec=P()))
    yield "columns spread", (jax.jit(double), spread(jnp.ones((8, 4)), SQUARE, P("a", "b")))
    yield "shard_map", (jax.jit(across), numbers)
    masked = jax.jit(lambda x, on: double.where(on, x, otherwise=x))
    yield "mask", (masked, numbers, True)
    yield "false mask", (masked, numbers, False)
    threads = pure_or_io(flavor, executor="threads:2")
    yield "threads", (jax.jit(threads), numbers)


def others():
    def product(x, w):
        note(x, w)
        return x @ w

    rows, table = spread(jnp.ones((8, 3))), spread(jnp.ones((3, 4)), spec=P(None, "d"))
    for given in ("x", ("x",), True):
        named = jaxcb.pure(product, result="jnp.zeros((8, 4))", partitioned=given)
        yield f"named {given}", (jax.jit(named), rows, table)
    yield "numbers", (jax.jit(lambda x: pure_or_io("io")(x[3])), spread(jnp.arange(8.0)))
    total = jaxcb.pure(lambda x: x.sum(), result="x[0]", partitioned=True)
    yield "no rows", (jax.jit(total), spread(jnp.arange(8.0)))

    sine = jaxcb.pure(np.sin, result="x", partitioned=True)
    sine.defjvp(lambda primals, tangents: (sine(*primals), jnp.cos(primals[0]) * tangents[0]))
    yield "grad", (jax.jit(jax.grad(lambda x: sine(x).sum())), spread(jnp.arange(8.0)))

    def product_of_rows(w, b):
        note(w, b)
        return w * b

    def backward(linear, w, b):
        return jax.jit(lambda ct: jax.vjp(lambda b: linear(w, b), b)[1](ct)[0])

    numbers = spread(jnp.arange(8.0))
    for given in ("b", "w, b"):
        linear = jaxcb.pure(product_of_rows, result="b", linear="b", partitioned=given)
        linear.deftranspose(lambda w, ct: product_of_rows(w, ct))
        w = 3.0 if given == "b" else spread(jnp.full(8, 3.0))
        yield f"transpose, {given}", (backward(linear, w, numbers), numbers)
    whole = jaxcb.pure(lambda w, b: w * b.sum(), result="w", linear="b", partitioned="w")
    whole.deftranspose(lambda w, ct: (note(w, ct), np.broadcast_to((w * ct).sum(), 3))[1])
    yield "transpose, w", (backward(whole, jnp.ones(8), jnp.ones(3)), numbers)

    @jaxcb.pure(result="x", partitioned=True)
    def failing(x):
        if jaxcb.call_info().shard == 2:
            raise ValueError("no luck")
        return x

    yield "failing", (jax.jit(failing), spread(jnp.arange(8.0)))


def explicit():
    double, numbers = pure_or_io("pure"), spread(jnp.arange(8.0), EXPLICIT)
    whole = jaxcb.pure(lambda x: 2 * x, result="x")
    whole.defjvp(lambda primals, tangents: (whole(*primals), 2 * tangents[0]))
    yield "explicit", (jax.jit(lambda x: double(x) + x), numbers)
    masked = jax.jit(lambda x: double.where(True, x, otherwise=-1.0))
    yield "explicit, mask", (masked, numbers)
    for name, each in (("explicit, vmap", double), ("explicit, vmap, gathered", whole)):
        yield name, (jax.jit(jax.vmap(lambda x, f=each: f(x) + x)), numbers)
    masked = jax.jit(lambda x: whole.where(True, x, otherwise=x))
    yield "explicit, mask, gathered", (masked, numbers)

    def either(x):
        return whole.where(x.sum() > 999, x, otherwise=x * x)

    gradient = jax.grad(lambda x: either(x).sum())
    yield "explicit, mask, gathered, grad", (jax.jit(gradient), numbers)
    loop = jax.jit(lambda x: jax.lax.fori_loop(0, 2, lambda _, y: either(y), x))
    yield "explicit, mask, gathered, loop", (loop, numbers)


def explicit_in_two_axes():
    """Rules and loops, which want results of the types of the arguments."""
    options = {"result": "x", "partitioned": True}
    sine, other = (jaxcb.pure(lambda x: (note(x), np.sin(x))[1], **options) for _ in range(2))
    sine.defjvp(lambda primals, tangents: (sine(*primals), jnp.cos(primals[0]) * tangents[0]))
    other.defvjp(lambda x: (other(x), x), lambda x, ct: (jnp.cos(x) * ct,))
    finite = jaxcb.pure(np.sin, derivative="finite", **options)
    linear = jaxcb.pure(lambda x, b: x * b, result="b", linear="b", partitioned=True)
    linear.deftranspose(lambda x, ct: x * ct)
    norm = jaxcb.pure(lambda x: (note(x), (x * x).sum(1))[1], result="x[:, 0]", partitioned=True)
    norm.defjvp(lambda primals, tangents: (norm(*primals), 2 * (primals[0] * tangents[0]).sum(1)))
    table = spread(jnp.arange(16.0).reshape(4, 4) / 8, TYPED, P("a", "b"))
    with jax.set_mesh(TYPED):
        for name, f in {"jvp": sine, "vjp": other, "finite": finite, "norm": norm}.items():
            yield f"grad, {name}", outcome(jax.jit(jax.grad(lambda x, f=f: f(x).sum())), table)
        gradient = jax.grad(lambda b, x: (linear(x, b) * b).sum())
        yield "grad, linear", outcome(jax.jit(gradient), table, table)
        masked = jax.vmap(lambda x: sine.where(x.sum() > 1, x, otherwise=x))
        yield "grad, mask", outcome(jax.jit(jax.grad(lambda x: masked(x).sum())), table)
        for name, f in {"sine": sine, "double": pure_or_io("io")}.items():
            loop = jax.jit(lambda x, f=f: jax.lax.fori_loop(0, 2, lambda _, y: f(y), x))
            yield f"loop, {name}", outcome(loop, table)
        branch = jax.jit(lambda x: jax.lax.cond(x.sum() > 0, sine, lambda x: x, x))
        yield "branch", outcome(branch, table)
        yield "rows of two axes", outcome(jax.jit(norm), table)
        yield "vmap of tables", outcome(jax.jit(jax.vmap(sine)), table.reshape(1, 4, 4))


if __name__ == "__main__":
    found = {}
    for flavor in ("pure", "io"):
        found |= {f"{flavor}: {name}": outcome(*run) for name, run in of_flavor(flavor)}
    found |= {name: outcome(*run) for name, run in others()}
    found |= {f"{name}, mesh not set": outcome(*run) for name, run in explicit()}
    with jax.set_mesh(EXPLICIT):
        found |= {name: outcome(*run) for name, run in explicit()}
    found |= {f"explicit in two axes: {name}": run for name, run in explicit_in_two_axes()}
    with jaxcb.record() as r:
        outcome(jax.jit(pure_or_io("pure")), spread(jnp.arange(8.0)))
    called = [r.recording.lowered[call.lowered] for call in r.recording]
    facts = [[fact.shard, fact.device, fact.gathered_bytes] for fact in called]
    (site,) = r.recording.outcomes
    found["recorded"] = [sorted(facts), site.status.value, site.compiled]
    double = pure_or_io("pure")
    programs = {"rows": double, "rows of a table, vmap": jax.vmap(double)}
    for name, program in programs.items():
        with jaxcb.record() as r:
            outcome(jax.jit(program), spread(jnp.arange(32.0).reshape(8, 4)))
        (row,) = jaxcb.report.summary.summarize(r.recording)
        shapes = [[one.calls, one.operands[0].shape, one.shards] for one in row.shapes]
        found[f"summary, {name}"] = [row.calls, row.written, shapes, list(row.notes)]
    for name, make in {
        "debug": lambda f: jaxcb.debug(f, partitioned=True),
        "io": lambda f: jaxcb.io(f, result=None, partitioned=True),
    }.items():
        received = []
        ends = make(lambda x, y, to=received: to.append([x.shape, y.shape]))
        for batch in (False, True):
            received.clear()
            f = jax.vmap(ends, in_axes=(1, 1)) if batch else ends
            with jaxcb.record() as r:
                outcome(jax.jit(lambda x, f=f: (f(x, 2 * x), x)[1]), spread(jnp.ones((8, 3))))
                jax.effects_barrier()
            (row,) = jaxcb.report.summary.summarize(r.recording)
            shapes = [[one.calls, *(a.shape for a in one.operands)] for one in row.shapes]
            found[f"without a result, {name}, {batch}"] = [[*received], shapes, list(row.notes)]
    print(json.dumps(found))
