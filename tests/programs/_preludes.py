"""The part above a program: its host functions, registered with our stack or JAX's own."""

from __future__ import annotations

from ._program import Host, Program
from ._text import Writer
from ._typed import declaration

FORMULAS = (
    ("0.5 * x + 1.0", "0.5 * x - 0.25 * y"),
    ("x / (1.0 + x * x)", "x * y / (1.0 + x * x)"),
    ("np.abs(x) - 0.5", "np.maximum(x, y)"),
    ("np.cos(x)", "np.cos(x) + 0.5 * y"),
)

HEAD = """\
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import PartitionSpec as P
{imports}
from jax.ad_checkpoint import checkpoint_name
from tests.programs._leaves import *
F32, V0, V3 = (jax.ShapeDtypeStruct(shape, np.float32) for shape in [(), (0,), (3,)])
MESH = jax.make_mesh((jax.device_count(),), ("d",))
LOG, FAIL, COUNTS, RETURNED, HELD = [], {fail!r}, {{}}, set(), []

class Planted(Exception):
    pass

def seen(name, *values):
    COUNTS[name] = COUNTS.get(name, 0) + 1
    LOG.append((name, tuple(np.asarray(value).tolist() for value in values)))
    if FAIL == (name, COUNTS[name]):
        raise Planted(name)

def arange(stop):
    return jnp.arange(stop, dtype=np.float32)

def twice(along, x):
    one, two = (jax.tree.leaves(along(size * jnp.ones_like(x)))[0] for size in (1, 2))
    return one + two
"""

OURS = """\
import jupyter_jaxcb as jaxcb
from jupyter_jaxcb import pure_callback, io_callback, buffer_callback
from jupyter_jaxcb import debug_callback, debug_print"""

JAXS = """\
from jax import pure_callback
from jax.debug import print as debug_print
from jax.experimental import io_callback as jax_io_callback
from jax.experimental.buffer_callback import buffer_callback

def like(x, *rest):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)

def debug_callback(host, *args, queued=False, vmap_method=None, **kwargs):
    jax.debug.callback(host, *args, **kwargs)

def io_callback(host, declared, *args, ordered, vmap_method=None, **kwargs):
    traced = TRACED.get(host.__name__.removesuffix("_host"))
    if traced is None:
        return jax_io_callback(host, declared, *args, ordered=ordered, **kwargs)
    jax.debug.callback(host, *args, ordered=ordered, **kwargs)
    return traced(*args, **kwargs)

TRACED = {}"""


def ours(program: Program) -> tuple[str, Writer]:
    """Return the module with our stack, and the host function that each line binds."""
    return _module(program, OURS, _ours)


def jaxs(program: Program, by_debug: set[str]) -> tuple[str, Writer]:
    """Return the same program with JAX's own callbacks.

    JAX drops io callbacks from differentiated loops, but ours run as often as without the
    derivative. So a debug callback, which JAX keeps, makes the calls of the host functions in
    `by_debug`, and JAX computes their results.
    """

    def write(host: Host, writer: Writer) -> None:
        _jaxs(host, writer)
        if host.name in by_debug:
            writer.write(f'TRACED["{host.name}"] = {_traced(host)}')

    return _module(program, JAXS, write)


def _traced(host: Host) -> str:
    """Return the body of a host function as one of JAX."""
    if not host.typed:
        formula = FORMULAS[host.math][host.arity - 1].replace("np.", "jnp.")
        return f"lambda {_names(host)}: {formula}"
    structs = f"jax.tree.leaves(D_{host.name})"
    return (
        f"lambda {'mask, ' * host.typed.masked}*args, **kwargs: (lambda r: {host.typed.tree})("
        f"results(jnp, {host.typed.ranks}, {structs}, args, kwargs))"
    )


def _module(program, imports, host_text):
    head = HEAD.format(imports=imports, fail=program.fail).splitlines()
    writer = Writer()
    for line in head:
        writer.write(line)
    for host in program.hosts:
        if host.flavor != "print":
            writer.write("")
            if host.typed:
                writer.write(f"D_{host.name} = {declaration(host.typed)}")
            host_text(host, writer)
            _rule(host, writer)
    writer.write("")
    writer.program(program)
    return "\n".join(writer.lines) + "\n", writer


def plain(program: Program) -> tuple[str, Writer]:
    """Return the same program for `_plain`, which provides the names that imports would."""
    writer = Writer()
    for host in program.hosts:
        if host.typed:
            writer.write(f'{host.name} = plain.typed("{host.name}")')
            writer.write(f"D_{host.name} = None")
        elif host.flavor != "print":
            _plain(host, writer)
            _rule(host, writer)
    writer.program(program)
    return "\n".join(writer.lines) + "\n", writer


def _plain(host: Host, writer: Writer) -> None:
    names, formula = _names(host), FORMULAS[host.math][host.arity - 1]
    result = f"({formula}, {formula} + 1.0)" if host.pair else formula
    writer.write(f"def {host.name}({names}):")
    writer.write(f"return {result}", 1)
    if host.registered:
        writer.write(f'{host.name} = plain.registered("{host.name}", {host.name})')


def _names(host: Host) -> str:
    return ", ".join("xy"[: host.arity])


def _host(host: Host, writer: Writer, name: str, leading: str = "") -> None:
    if host.typed:
        writer.write(f"def {name}(*args, **kwargs):")
        writer.write(f'seen("{host.name}", facts(args, kwargs, HELD))', 1)
        structs = f"jax.tree.leaves(D_{host.name})"
        writer.write(f"r = results(np, {host.typed.ranks}, {structs}, args, kwargs)", 1)
        writer.write(f"return {host.typed.tree}", 1)
        return
    names = _names(host)
    formula = FORMULAS[host.math][host.arity - 1]
    transforms = ", transforms" if host.flavor == "tap" and not leading.startswith("#") else ""
    leading = leading.lstrip("#")
    writer.write(f"def {name}({leading}{names}{transforms}):")
    writer.write(f"{names}, = " + ", ".join(f"np.asarray({n})" for n in names.split(", ")) + ",", 1)
    writer.write(f'seen("{host.name}", {names})', 1)
    if host.flavor in ("debug", "tap"):
        return
    if host.flavor == "buffer":
        outs = ["out[0]", "out[1]"] if host.pair else ["out"]
        for i, out in enumerate(outs):
            writer.write(f"np.asarray({out})[...] = {formula} + {i}.0", 1)
    elif host.pair:
        writer.write(f"return {formula}, {formula} + 1.0", 1)
    else:
        writer.write(f"return {formula}", 1)


def _ours(host: Host, writer: Writer) -> None:
    if not host.registered:
        return _host(host, writer, host.name, "context, out, " if host.flavor == "buffer" else "")
    options = []
    if host.typed:
        options = [f"result=D_{host.name}"] * (host.flavor != "debug")
    elif host.flavor in ("pure", "io", "buffer"):
        options.append('result="(x, x)"' if host.pair else 'result="x"')
    if host.flavor == "buffer":
        options.append(f"vmap_method={host.method!r}")
    elif host.flavor != "tap":
        options.append(host.options())
    if host.flavor == "buffer":
        options.append(f"has_side_effect={host.side_effect}")
    arguments = f"({', '.join(options)})" if options else ""
    writer.write(f"@jaxcb.{host.flavor}{arguments}")
    _host(host, writer, host.name, "out, " if host.flavor == "buffer" else "")
    return None


def _jaxs(host: Host, writer: Writer) -> None:
    leading = "context, out, " if host.flavor == "buffer" else ""
    if not host.registered:
        return _host(host, writer, host.name, leading)
    _host(host, writer, f"{host.name}_host", leading or "#")
    if host.typed:
        declared = "" if host.flavor == "debug" else f"D_{host.name}, "
        call = f"{host.flavor}_callback(host, {declared}*args, {host.options()}, **kwargs)"
        kind = "Masked" if host.typed.masked else "Unmasked"
        writer.write(f"{host.name} = {kind}({host.name}_host, D_{host.name},")
        writer.write(f"lambda host, *args, **kwargs: {call})", 1)
        return None
    if host.rule:
        writer.write(f"@jax.custom_{host.rule}")
    names = _names(host)
    writer.write(f"def {host.name}({names}):")
    shape = f"(like({names}), like({names}))" if host.pair else f"like({names})"
    call = {
        "pure": f'pure_callback({host.name}_host, {shape}, {names}, vmap_method="{host.method}")',
        "io": f"io_callback({host.name}_host, {shape}, {names}, ordered={host.ordered})",
        "debug": f"debug_callback({host.name}_host, {names}, ordered={host.ordered})",
        "buffer": f"buffer_callback({host.name}_host, {shape}, has_side_effect={host.side_effect},"
        f' vmap_method="{host.method}")({names})',
        "tap": f"(debug_callback({host.name}_host, x, ordered={host.ordered}), x)[1]",
    }[host.flavor]
    writer.write(f"return {call}", 1)
    return None


def _rule(host: Host, writer: Writer) -> None:
    if not host.rule:
        return
    names = _names(host)
    dots = ", ".join(f"d{n}" for n in names.split(", "))

    def factor() -> str:
        if not host.factor:
            return "0.5"
        writer.write(f"slope = {host.factor}(x)", 1, host=host.factor, rule=True)
        return "slope"

    if host.rule == "jvp":
        writer.write(f"@{host.name}.defjvp")
        writer.write(f"def {host.name}_rule(primals, tangents):")
        writer.write(f"({names},), ({dots},) = primals, tangents", 1)
        slope = factor()
        tangent = " + ".join(f"{slope} * {dot}" for dot in dots.split(", "))
        tangent = f"({tangent}, 2.0 * ({tangent}))" if host.pair else tangent
        writer.write(f"value = {host.name}({names})", 1, host=host.name, rule=True)
        writer.write(f"return value, {tangent}", 1)
        return
    writer.write(f"def {host.name}_forward({names}):")
    writer.write(f"value = {host.name}({names})", 1, host=host.name, rule=True)
    writer.write(f"return value, ({names},)", 1)
    writer.write(f"def {host.name}_backward(kept, cotangent):")
    writer.write(f"({names},) = kept", 1)
    if host.pair:
        writer.write("cotangent = cotangent[0] + 2.0 * cotangent[1]", 1)
    slope = factor()
    writer.write("return (" + f"{slope} * cotangent, " * host.arity + ")", 1)
    writer.write(f"{host.name}.defvjp({host.name}_forward, {host.name}_backward)")
