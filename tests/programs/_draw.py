"""Draw random programs."""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Callable, Iterator

from tests.interface import VMAP_METHODS

from ._context import Context, Helper
from ._program import Function, Host, Program, Statement
from ._text import call_text
from ._typed import DrawTyped

METHODS = ("sequential", *(name for name, one in VMAP_METHODS.items() if not one.hides_axes))
ARITHMETIC = (
    "0.5 * $0 + 0.25 * $1",
    "jnp.sin($0)",
    "$0 - $1",
    "jnp.where($0 > $1, $0, 0.5 * $1)",
    "jnp.minimum($0, 1.0)",
    "$0 * 0.0 + $1",
    "jax.lax.stop_gradient($0) + $1",
)
POLICIES = (
    "nothing_saveable",
    "everything_saveable",
    "dots_saveable",
    'save_only_these_names("x")',
    'save_anything_except_these_names("x")',
)


class Draw:
    """Draw one program from a seed.

    A second source of random numbers decides what to add to the program: typed host functions and
    what else was thought of later. So a seed still draws the program that it drew without them. A
    third one adds callbacks that get whole batches.
    """

    def __init__(self, seed: int | str, devices: int = 1, fuel: int = 14) -> None:
        self.random = random.Random(seed)
        self.devices = devices
        self.hosts: list[Host] = []
        self.helpers: list[Helper] = []
        self.fuel = fuel
        self.names = 0
        self.extra = random.Random(f"extra {seed}")
        self.extra_hosts: list[Host] = []
        self.x64 = self.extra.random() < 0.3
        self.typed = DrawTyped(self.extra, self.x64)
        self.batches = DrawTyped(random.Random(f"batches {seed}"), self.x64)
        self.batch_hosts: list[Host] = []

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def fresh(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def program(self) -> Program:
        for _ in range(self.random.randint(0, 3)):
            self.helper()
        main = self.function("program", ("x",), Context(), self.random.randint(2, 6))
        mode = self.random.choices(["jit", "eager", "aot"], [8, 1, 1])[0]
        inputs = tuple(self.random.choice([0.75, -1.25, 0.3, 2.5]) for _ in range(self.count()))
        blocks = "one" if len(inputs) == 1 else self.random.choice(["one", "each", "late"])
        fail = None
        if self.hosts and self.chance(0.1):
            fail = (self.random.choice(self.hosts).name, self.random.randint(1, 4))
        for host in self.hosts:
            host.queued = host.flavor == "debug" and host.registered and self.typed.one_in(4)
        if self.extra_hosts and not fail and self.typed.one_in(20):
            fail = (self.extra.choice(self.extra_hosts).name, self.extra.randint(1, 4))
        if self.typed.one_in(2):
            self.add_pair(main)
        helpers = [helper.function for helper in self.helpers]
        hosts = [*self.hosts, *self.extra_hosts, *self.batch_hosts]
        return Program(hosts, helpers, main, mode, inputs, blocks, fail, self.x64)

    def count(self) -> int:
        return self.random.choices([1, 2, 3], [6, 3, 1])[0]

    # functions

    def helper(self) -> None:
        decorator = self.random.choices(
            ["", "jit", "checkpoint", "custom_jvp", "custom_vjp"], [2, 5, 1, 1, 1]
        )[0]
        context = Context(
            differentiated=self.chance(0.5),
            batched=self.chance(0.7),
            pure=decorator == "checkpoint" or self.chance(0.3),
            depth=2,
        )
        names = ("x",) if self.chance(0.75) else ("x", "y")
        function = self.function(self.fresh("helper"), names, context, self.random.randint(1, 3))
        function.decorator = decorator
        if decorator.startswith("custom") and self.chance(0.4):
            function.factor = self.slope()
        if decorator.startswith("custom") and self.typed.one_in(2):
            function.observer = self.observer(context)
        self.helpers.append(Helper(function, context))

    def local(self, context: Context, scope: tuple[str, ...], parameters: int = 1) -> Function:
        """Draw a nested function, which can use the variables in `scope`."""
        inner = dataclasses.replace(context, depth=context.depth - 1)
        names = tuple(self.fresh("a") for _ in range(parameters))
        size = self.random.randint(1, 2)
        function = self.function(self.fresh("f"), names, inner, size, scope)
        if self.chance(0.15):
            function.decorator = "jit"
        elif context.pure and self.chance(0.2):
            function.decorator = "checkpoint"
        return function

    def function(
        self,
        name: str,
        parameters: tuple[str, ...],
        context: Context,
        size: int,
        outer: tuple[str, ...] = (),
    ) -> Function:
        own = list(parameters)
        body: list[Statement] = []
        for _ in range(size):
            scope = (*outer[-2:], *own)
            statement = self.statement(context, scope)
            body.append(statement)
            own += [name for name in statement.targets if name != "_"]
        kept = [name for name in own if self.chance(0.65)] or [own[-1]]
        with self.drawing_from(self.extra, self.extra_hosts):
            while self.typed.one_in(3):
                self.add(self.extra_kinds(context), context, parameters, body, kept)
        with self.drawing_from(self.batches.random, self.batch_hosts):
            if self.batches.one_in(4):
                self.add([self.batch_call], context, parameters, body, kept)
        return Function(name, parameters, body, tuple(kept))

    # what the other sources add

    @contextlib.contextmanager
    def drawing_from(self, source: random.Random, hosts: list[Host]) -> Iterator[None]:
        """Draw from another source, and add its host functions to `hosts`."""
        main = self.random, self.hosts, self.fuel
        self.random, self.hosts = source, hosts
        try:
            yield
        finally:
            self.random, self.hosts, self.fuel = main

    def add(
        self,
        kinds: list[Callable[[Context, tuple[str, ...]], Statement]],
        context: Context,
        parameters: tuple[str, ...],
        body: list[Statement],
        kept: list[str],
    ) -> None:
        """Add a statement to the body of a function, and perhaps its value to the result."""
        place = self.random.randint(0, len(body))
        scope = list(parameters)
        for statement in body[:place]:
            scope += [name for name in statement.targets if name != "_"]
        statement = self.random.choice(kinds)(context, tuple(scope))
        body.insert(place, statement)
        kept += [name for name in statement.targets if self.chance(0.7)]

    def extra_kinds(
        self, context: Context
    ) -> list[Callable[[Context, tuple[str, ...]], Statement]]:
        kinds = [self.typed_call, self.typed_call, self.typed_call, self.marked]
        if context.differentiated and context.depth > 0 and self.fuel > 0:
            kinds.append(self.stopped_loop)
        if context.depth > 0 and not context.pure:
            kinds.append(self.watched_loop)
        return kinds

    def batch_call(self, context: Context, scope: tuple[str, ...]) -> Statement:
        host = self.batches.batch_host(self.fresh("h"), pure=context.pure)
        self.hosts.append(host)
        return self.batches.call(host, self.fresh("v"), self.pick(scope, 2), moving=False)

    def typed_call(self, context: Context, scope: tuple[str, ...]) -> Statement:
        name, target = self.fresh("h"), self.fresh("v")
        host = self.typed.host(
            name, batched=context.batched, pure=context.pure, looped=context.looped
        )
        self.hosts.append(host)
        moving = context.differentiated and self.typed.one_in(15)
        return self.typed.call(host, target, self.pick(scope, 2), moving)

    def marked(self, context: Context, scope: tuple[str, ...]) -> Statement:
        """Name a value for the policies of checkpoints."""
        return Statement('checkpoint_name($0, "x")', (self.fresh("v"),), self.pick(scope))

    def stopped_loop(self, context: Context, scope: tuple[str, ...]) -> Statement:
        """Draw a while loop that derivatives do not reach, without the variables around it."""
        statement = self.loop(dataclasses.replace(context, differentiated=False), ())
        statement.template = statement.template.replace("(0, $0)", "(0, jax.lax.stop_gradient($0))")
        statement.arguments = self.pick(scope, 2)
        return statement

    def watched_loop(self, context: Context, scope: tuple[str, ...]) -> Statement:
        """Draw the derivative of a loop with an unused io callback, which JAX drops."""
        inner = dataclasses.replace(context, differentiated=True, looped=True, depth=0)
        body = self.local(inner, scope, 2)
        body.ending = "$, None"
        host = Host(self.fresh("h"), "io", self.typed.one_in(2))
        host.ordered = not context.batched and self.typed.one_in(2)
        self.hosts.append(host)
        call = call_text(host, ["jax.lax.stop_gradient($0)"], "F32")
        body.body.append(Statement(call, (), body.parameters[:1], host=host.name))
        template = (
            f"jax.grad(lambda c: jax.lax.scan($f, c, arange({self.extra.choice([1, 3])}.0))[0])"
        )
        return Statement(f"{template}($0)", (self.fresh("v"),), self.pick(scope), (body,))

    def add_pair(self, main: Function) -> None:
        """Add two ordered calls in a row, which XLA may swap if no token keeps their order."""
        flavor, place = self.extra.choice(["io", "debug"]), self.extra.randint(0, len(main.body))
        scope = [*main.parameters, *(n for s in main.body[:place] for n in s.targets if n != "_")]
        for _ in range(2):
            host = Host(self.fresh("h"), flavor, True, ordered=True)
            self.extra_hosts.append(host)
            call = call_text(host, ["$0"], "F32")
            main.body.insert(
                place, Statement(call, (), (self.extra.choice(scope),), host=host.name)
            )

    def observer(self, context: Context) -> str:
        """Draw the call of a debug or an io callback in the derivative rule of a helper."""
        host = Host(self.fresh("h"), self.extra.choice(["debug", "debug", "io"]), True)
        host.ordered = not context.batched and self.typed.one_in(2)
        if context.pure:
            host.flavor = "debug"
        self.extra_hosts.append(host)
        return call_text(host, ["jax.lax.stop_gradient($0)"], "F32")

    def varied(self, template: str) -> str:
        """Return a derivative with another policy, or with two calls of what it returns."""
        if "jax.checkpoint(" in template and self.typed.one_in(2):
            policy = f"policy=jax.checkpoint_policies.{self.extra.choice(POLICIES)}"
            kept = f"{policy}, prevent_cse={self.typed.one_in(2)}"
            return template.replace("))($0)", f", {kept}))($0)")
        for once in ("[1](jnp.ones_like($0))[0]", "[1](jnp.ones_like($0))"):
            if template.endswith(once) and self.typed.one_in(2):
                return f"twice({template.removesuffix(once)}[1], $0)"
        return template

    # statements

    def statement(self, context: Context, scope: tuple[str, ...]) -> Statement:
        self.fuel -= 1
        kinds = {self.arithmetic: 1.0, self.host: 5.0, self.call: 2.5}
        if context.depth > 0 and self.fuel > 0:
            kinds |= {self.vmap: 1.5, self.scan: 1.2, self.cond: 1.2, self.fori: 0.6}
            kinds |= {self.derivative: 1.2, self.loop: 0.0 if context.differentiated else 0.8}
            if self.devices > 1 and not context.batched and not context.looped:
                kinds[self.shard] = 3.0
        kind = self.random.choices(list(kinds), list(kinds.values()))[0]
        return kind(context, scope)

    def pick(self, scope: tuple[str, ...], number: int = 1) -> tuple[str, ...]:
        """Pick variables, preferring later ones."""
        return tuple(
            scope[max(int(len(scope) * self.random.random() ** 0.6), 0) % len(scope)]
            for _ in range(number)
        )

    def arithmetic(self, context: Context, scope: tuple[str, ...]) -> Statement:
        template = self.random.choice(ARITHMETIC)
        return Statement(template, (self.fresh("v"),), self.pick(scope, 2))

    def call(self, context: Context, scope: tuple[str, ...]) -> Statement:
        """Draw a call of a helper, sometimes through its own ``jax.jit``."""
        helper = self.suitable(context)
        if helper is None:
            return self.host(context, scope)
        number = len(helper.parameters)
        arguments = ", ".join(f"${i}" for i in range(number))
        template = f"{helper.name}({arguments})"
        if self.chance(0.1):
            template = f"jax.jit({helper.name})({arguments})"
        target = (self.fresh("v"),) if self.chance(0.9) else ()
        return Statement(template, target, self.pick(scope, number), calls=(helper.name,))

    def suitable(self, context: Context, parameters: int = 0) -> Function | None:
        found = [
            helper.function
            for helper in self.helpers
            if (helper.context.differentiated or not context.differentiated)
            and (helper.context.batched or not context.batched)
            and (helper.context.pure or not context.pure)
            and parameters in (0, len(helper.function.parameters))
        ]
        return self.random.choice(found) if found else None

    def inner(
        self, context: Context, scope: tuple[str, ...], parameters: int = 1
    ) -> tuple[str, tuple[Function, ...], tuple[str, ...]]:
        """Return a name for the template, the functions to define first, and the helpers called."""
        if self.chance(0.45) and (helper := self.suitable(context, parameters)):
            return helper.name, (), (helper.name,)
        return "$f", (self.local(context, scope, parameters),), ()

    def vmap(self, context: Context, scope: tuple[str, ...]) -> Statement:
        batched = dataclasses.replace(context, batched=True)
        size = self.random.choices([0, 1, 2, 3], [0.3, 1, 3, 3])[0]
        form = self.random.choice(["one", "one", "two", "nested", "outer", "jit", "none"])
        name, functions, calls = self.inner(batched, scope, 2 if form in ("two", "outer") else 1)
        xs = f"$0 + arange({size}.0)"
        template = {
            "one": f"jax.vmap({name})({xs})",
            "jit": f"jax.jit(jax.vmap({name}))({xs})",
            "two": f"jax.vmap({name}, in_axes=(0, None))({xs}, $1)",
            "nested": f"jax.vmap(jax.vmap({name}))($0 + arange(6.0).reshape(3, 2))",
            "outer": f"jax.vmap(jax.vmap({name}, (0, None)), (None, 0))({xs}, $1 + arange(2.0))",
            "none": f"jax.vmap({name}, in_axes=None, axis_size={max(size, 1)})($0)",
        }[form]
        target = (self.fresh("v"),)
        arguments = self.pick(scope, 2)
        return Statement(f"jnp.sum({template})", target, arguments, functions, calls)

    def derivative(self, context: Context, scope: tuple[str, ...]) -> Statement:
        inner = dataclasses.replace(context, differentiated=True)
        name, functions, calls = self.inner(inner, scope)
        template = self.random.choice(
            [
                f"jax.grad({name})($0)",
                f"jax.value_and_grad({name})($0)[0]",
                f"sum(jax.value_and_grad({name})($0))",
                f"jax.jvp({name}, ($0,), (jnp.ones_like($0),))[1]",
                f"sum(jax.jvp({name}, ($0,), (jnp.ones_like($0),)))",
                f"jax.vjp({name}, $0)[1](jnp.ones_like($0))[0]",
                f"jax.linearize({name}, $0)[1](jnp.ones_like($0))",
                f"jax.jacfwd({name})($0)",
                f"jax.grad(jax.checkpoint({name}))($0)",
                f"jax.grad(jax.jit({name}))($0)",
                f"jax.grad(jax.grad({name}))($0)",
            ]
        )
        template = self.varied(template)
        return Statement(template, (self.fresh("v"),), self.pick(scope), functions, calls)

    def scan(self, context: Context, scope: tuple[str, ...]) -> Statement:
        inner = dataclasses.replace(context, looped=True)
        length = self.random.choices([0, 1, 2, 3, 5], [1, 2, 2, 3, 1])[0]
        options = self.random.choice(["", "", "", ", reverse=True", ", unroll=2"])
        target = self.fresh("v")
        if self.chance(0.2):
            name, functions, calls = self.inner(inner, scope)
            template = f"jnp.sum(jax.lax.map({name}, $0 + arange({length}.0)))"
            return Statement(template, (target,), self.pick(scope), functions, calls)
        body = self.local(inner, scope, 2)
        body.ending = f"$, {self.random.choice(['None', body.parameters[1], body.result[-1]])}"
        xs = f"arange({length}.0)"
        template = f"jax.lax.scan($f, $0, {xs}{options})"
        if body.ending.endswith("None"):
            return Statement(template, (target, "_"), self.pick(scope), (body,))
        template = (
            f"jnp.sum({template}[1])"
            if self.chance(0.3)
            else f"sum(jnp.sum(part) for part in {template})"
        )
        return Statement(template, (target,), self.pick(scope), (body,))

    def fori(self, context: Context, scope: tuple[str, ...]) -> Statement:
        inner = dataclasses.replace(context, looped=True)
        body = self.local(inner, scope, 1)
        number = self.random.choice([0, 1, 2, 4])
        template = f"jax.lax.fori_loop(0, {number}, lambda _, c: $f(c), $0)"
        return Statement(template, (self.fresh("v"),), self.pick(scope), (body,))

    def loop(self, context: Context, scope: tuple[str, ...]) -> Statement:
        """Draw a while loop that ends by a counter, with or without a condition on the data."""
        inner = dataclasses.replace(context, looped=True)
        body = self.local(inner, scope, 1)
        number = self.random.choice([0, 1, 2, 4])
        test = f"s[0] < {number}"
        functions: tuple[Function, ...] = (body,)
        if self.chance(0.4):
            test += " + ($1 > 0.5)"
        if self.chance(0.3):
            functions += (self.local(inner, scope, 1),)
            test = f"({test}) & ($g(s[1]) < 50.0)"
        template = (
            f"jax.lax.while_loop(lambda s: {test}, lambda s: (s[0] + 1, $f(s[1])), (0, $0))[1]"
        )
        return Statement(template, (self.fresh("v"),), self.pick(scope or ("",), 2), functions)

    def cond(self, context: Context, scope: tuple[str, ...]) -> Statement:
        branches = 3 if self.chance(0.25) else 2
        functions, names, calls = [], [], ()
        for _ in range(branches):
            if self.chance(0.25) and (helper := self.suitable(context, 1)):
                names.append(helper.name)
                calls += (helper.name,)
            else:
                functions.append(self.local(context, scope))
                names.append("$" + "fgh"[len(functions) - 1])
        test = self.random.choice(["$0 > 0.5", "$0 > 0.5", "$0 < 100.0", "$1 > $0", "True"])
        if branches == 3:
            template = f"jax.lax.switch(jnp.int32($0), [{', '.join(names)}], $1)"
        else:
            template = f"jax.lax.cond({test}, {names[0]}, {names[1]}, $1)"
        target = (self.fresh("v"),)
        return Statement(template, target, self.pick(scope, 2), tuple(functions), calls)

    def shard(self, context: Context, scope: tuple[str, ...]) -> Statement:
        name, functions, calls = self.inner(dataclasses.replace(context, batched=True), ())
        body = f"lambda part: {name}(part[0])[None]"
        mapped = f"jax.shard_map({body}, mesh=MESH, in_specs=P('d'), out_specs=P('d'))"
        template = f"jnp.sum({mapped}($0 + arange({self.devices}.0)))"
        return Statement(template, (self.fresh("v"),), self.pick(scope), functions, calls)

    # host functions

    def host(self, context: Context, scope: tuple[str, ...]) -> Statement:
        host = self.reused(context) if self.chance(0.15) else None
        host = host or self.new_host(context)
        names = self.pick(scope, host.arity)
        arguments = [f"${i}" for i in range(host.arity)]
        vector = host.flavor in ("pure", "io", "buffer") and self.chance(0.08)
        if vector:
            length = self.random.choice([0, 3])
            arguments = [f"{a} + arange({length}.0)" for a in arguments]
        if host.flavor == "io" and context.differentiated:
            arguments = [f"jax.lax.stop_gradient({a})" for a in arguments]
        text = call_text(host, arguments, f"V{length}" if vector else "F32")
        targets: tuple[str, ...] = ()
        if host.flavor not in ("debug", "print"):
            targets = tuple(self.fresh("v") for _ in range(1 + host.pair))
            if vector:
                text = f"(jnp.sum(part) for part in {text})" if host.pair else f"jnp.sum({text})"
            if self.chance(0.1):
                targets = ()
        return Statement(text, targets, names, (), (), host.name)

    def reused(self, context: Context) -> Host | None:
        found = [host for host in self.hosts if self.fits(host, context)]
        return self.random.choice(found) if found else None

    def fits(self, host: Host, context: Context) -> bool:
        if host.typed or (context.batched and host.ordered):
            return False
        if context.pure and host.flavor in ("io", "tap"):
            return False
        if context.differentiated and host.flavor in ("pure", "buffer"):
            return bool(host.rule)
        return True

    def new_host(self, context: Context) -> Host:
        while True:
            host = self.any_host()
            if self.fits(host, context) or self.chance(0.005):
                break
        if host.rule and self.chance(0.3):
            host.factor = self.slope()
        host.name = self.fresh("h")
        self.hosts.append(host)
        return host

    def slope(self) -> str:
        """Return the name of a host function for a derivative rule."""
        found = [h for h in self.hosts if h.rule and h.arity == 1 and not h.pair]
        if found and self.chance(0.5):
            return self.random.choice(found).name
        host = Host(self.fresh("h"), "pure", True, 1, False, self.random.choice(METHODS), 1, "jvp")
        self.hosts.append(host)
        return host.name

    def any_host(self) -> Host:
        flavor = self.random.choices(
            ["pure", "io", "debug", "print", "buffer", "tap"], [8, 3, 1.5, 0.7, 1.5, 1.5]
        )[0]
        registered = flavor == "tap" or (flavor != "print" and self.chance(0.65))
        host = Host("", flavor, registered, math=self.random.randrange(4))
        if flavor in ("pure", "io", "debug", "buffer") and self.chance(0.3):
            host.arity = 2
        if flavor in ("io", "debug", "print"):
            host.ordered = self.chance(0.4)
        if flavor in ("pure", "buffer"):
            host.method = self.random.choice(METHODS)
            if host.arity == 1 and self.chance(0.1):
                host.method = "legacy_vectorized"
            host.pair = self.chance(0.1)
            if registered:
                host.rule = self.random.choice(["", "jvp", "jvp", "vjp"])
        if flavor == "buffer":
            host.side_effect = self.chance(0.3)
        return host
