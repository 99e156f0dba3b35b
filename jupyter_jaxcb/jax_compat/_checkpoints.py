"""Save host calls in a differentiated `jax.checkpoint`, or say which one JAX refuses there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from ._calls import Primitive, partial_eval_jaxpr_custom_rules
from ._subjects import is_on, module

# Raises an error for a call that JAX refuses in a checkpoint, given its parameters.
Refuse = Callable[[dict[str, Any]], None]
# Whether a call is saved, given the callback.
Saves = Callable[[Any], bool]

_rules: dict[Primitive, tuple[Refuse, Saves]] = {}


def save_in_checkpoints(primitive: Primitive, refuse: Refuse, saves: Saves) -> None:
    """Save the results of calls of a primitive whatever the policy of a checkpoint says."""
    if not _rules and is_on("exact"):
        _install()
    _rules[primitive] = refuse, saves


def _calls(primitive: Any, params: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield primitive and parameters of the calls that an equation makes, however deep."""
    if primitive in _rules:
        yield primitive, params
    for jaxpr in module("core").jaxprs_in_params(params):
        for equation in jaxpr.eqns:
            yield from _calls(equation.primitive, equation.params)


def _saves(primitive: Any, params: dict[str, Any]) -> bool:
    return any(_rules[call][1](of["callback"]) for call, of in _calls(primitive, params))


@dataclasses.dataclass(frozen=True)  # compared by value: JAX keeps what it derives with a policy
class _Policy:
    """The policy of a checkpoint, but calls are saved."""

    users: Callable[..., Any]

    def __call__(self, primitive: Any, *avals: Any, **params: Any) -> Any:
        return _saves(primitive, params) or self.users(primitive, *avals, **params)


def _install() -> None:
    """Put two rules around JAX's."""
    loop = module("lax.control_flow.loops").while_p
    checkpoint = module("ad_checkpoint").remat_p
    traced = module("interpreters.partial_eval").custom_partial_eval_rules
    jaxs_loop, jaxs_checkpoint = partial_eval_jaxpr_custom_rules[loop], traced[checkpoint]

    def partial_eval(
        trace: Any, *tracers: Any, jaxpr: Any, policy: Any, prevent_cse: Any, **params: Any
    ) -> Any:
        __tracebackhide__ = True
        for primitive, of_call in _calls(checkpoint, {"jaxpr": jaxpr}):
            _rules[primitive][0](of_call)
        if not isinstance(policy, _Policy) and _saves(checkpoint, {"jaxpr": jaxpr}):
            policy = _Policy(policy or module("ad_checkpoint").nothing_saveable)
        return jaxs_checkpoint(
            trace, *tracers, jaxpr=jaxpr, policy=policy, prevent_cse=prevent_cse, **params
        )

    def partial_eval_loop(saveable: Any, unknown: Any, instantiated: Any, equation: Any) -> Any:
        # JAX makes a loop again whatever the policy says. What is unknown in one depends on a
        # tangent, and then it has no backward pass.
        if not any(unknown) and _saves(loop, equation.params):
            none = [False] * len(equation.outvars)
            return equation, None, none, none, []
        return jaxs_loop(saveable, unknown, instantiated, equation)

    traced[checkpoint] = partial_eval
    partial_eval_jaxpr_custom_rules[loop] = partial_eval_loop
