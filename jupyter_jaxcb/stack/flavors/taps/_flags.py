"""The options of host_callback that `jax.config` had, with the same environment variables."""

from __future__ import annotations

import os
from typing import Any

_TRUE = frozenset({"y", "yes", "t", "true", "on", "1"})
_FALSE = frozenset({"n", "no", "f", "false", "off", "0"})


class Flags:
    """The options of host_callback; `update` changes one, as `jax.config.update` did.

    Attributes:
        jax_host_callback_inline: eager taps and calls raise the exception of the host function
            itself, at once.
        jax_host_callback_max_queue_byte_size: ignored; there is no queue.
        jax_host_callback_outfeed: ignored; errors of taps are always postponed.
        jax_host_callback_legacy: ignored.
        raise_at_once: a failing tap fails its computation, as it did on the CPU, instead of being
            postponed until `barrier_wait`. JAX has no such option.
    """

    __module__ = "jupyter_jaxcb.host_callback"  # where users import it from

    def __init__(self) -> None:
        self.jax_host_callback_inline = False
        self.jax_host_callback_max_queue_byte_size = 256_000_000
        self.jax_host_callback_outfeed = False
        self.jax_host_callback_legacy = True
        self.raise_at_once = False

    def read_environment(self) -> None:
        """Read the options from environment variables.

        Raises:
            ValueError: if a variable has an invalid value, or is for a removed option.
        """
        if _boolean("JAX_HOST_CALLBACK_AD_TRANSFORMS", False):
            raise ValueError(f"JAX_HOST_CALLBACK_AD_TRANSFORMS is set. {_GONE}")
        for name, value in vars(self).items():
            if name.startswith("jax_"):
                read = _boolean if isinstance(value, bool) else _number
                setattr(self, name, read(name.upper(), value))

    def update(self, name: str, value: Any) -> None:
        """Set the option `name`.

        Raises:
            AttributeError: if there is no such option.
            TypeError: if `value` has the wrong type.
        """
        if name == "jax_host_callback_ad_transforms":
            raise AttributeError(f"unrecognized option: {name}. {_GONE}")
        if name not in vars(self):
            raise AttributeError(
                f"unrecognized option: {name}. Use one of {', '.join(vars(self))}."
            )
        kind = type(getattr(self, name))
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be {kind.__name__}, but got {value!r}.")
        setattr(self, name, value)


_GONE = (
    "This option was removed in JAX 0.4.16: taps get primal values only. To get tangents or "
    "cotangents, tap them in a rule of jax.custom_jvp or jax.custom_vjp."
)


def _boolean(variable: str, default: bool) -> bool:
    text = os.environ.get(variable, "").lower()
    if text and text not in _TRUE | _FALSE:
        raise ValueError(f"{variable}={text!r} is not a boolean. Set it to 1 or 0.")
    return text in _TRUE if text else default


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable, "")
    try:
        return int(float(text)) if text else default
    except ValueError:
        raise ValueError(f"{variable}={text!r} is not a number of bytes. Set an integer.") from None


flags = Flags()
