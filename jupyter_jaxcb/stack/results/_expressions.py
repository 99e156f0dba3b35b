"""Turn a declared result (structs, an expression over parameters, a function) into avals."""

from __future__ import annotations

import ast
import functools
import inspect
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import PyTreeDef, tree_flatten, tree_map

from ... import jax_compat
from ..call import given_name, plain_signature, text_of
from ..errors import describe
from ._annotations import Annotated
from ._array import shown
from ._casting import may_be_of_jax
from ._inferred import Inferred, UfuncResult

# Accepted by `result=`: a pytree of leaves with shape and dtype, an expression, or a function.
Result = Any


_ARRAYS = (np.ndarray, jax.Array)


class ShapeOf(tuple[int, ...]):
    """The shape of a parameter inside a result expression, which keeps the parameter's dtype.

    So ``z.shape[:1]`` alone declares a result of that shape, with the dtype of ``z``.
    """

    dtype: Any

    def __new__(cls, shape: tuple[int, ...], dtype: Any) -> ShapeOf:
        self = super().__new__(cls, shape)
        self.dtype = dtype
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self)

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return ShapeOf(found, self.dtype) if isinstance(found, tuple) else found

    def __add__(self, other: tuple[int, ...]) -> ShapeOf:  # type: ignore[override]
        return ShapeOf((*self, *other), self.dtype)

    def __radd__(self, other: tuple[int, ...]) -> ShapeOf:
        return ShapeOf((*other, *self), self.dtype)


class Parameter:
    """A parameter inside a result expression: shape, dtype, ndim and size, but no values.

    ``z[0]`` and ``z[1:]`` are parameters, too: the elements of ``z`` that they select.
    """

    def __init__(self, aval: Any) -> None:
        self.dtype = aval.dtype
        self.shape = ShapeOf(aval.shape, aval.dtype)
        self.ndim = len(aval.shape)
        self.size = int(np.prod(aval.shape))

    def __getitem__(self, index: Any) -> Parameter:
        for one in index if isinstance(index, tuple) else (index,):
            if not isinstance(one, int | np.integer | slice | type(None) | type(...)):
                raise TypeError(
                    "a parameter has no values in a result expression, and takes only integers "
                    "and slices as an index"
                )
        without_memory = np.broadcast_to(np.empty((), bool), tuple(self.shape))
        return Parameter(jax_compat.shaped_array(without_memory[index].shape, self.dtype))

    def __iter__(self) -> Iterator[Parameter]:
        return (self[place] for place in range(self.shape[0]))

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


def result_avals(
    result: Result, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], PyTreeDef]:
    """Return the flat avals and the structure that `result` declares for one call.

    Args:
        result: a pytree whose leaves have ``shape`` and ``dtype``, or are scalar types such as
            ``float``; an expression over the parameter names of `function` such as ``"z"`` or
            ``"(z[0], z.shape[:1])"``; or a function that gets the arguments' shapes and dtypes and
            returns such a pytree.
        function: the host function, for its parameter names and its globals.
        args: positional arguments of the call, pytrees of array-likes.
        kwargs: keyword arguments of the call.

    Raises:
        ValueError: if the expression or function fails or returns a leaf without shape and dtype,
            or declares a 64-bit dtype while ``jax_enable_x64`` is off.
        TypeError: if the arguments do not match the parameters of `function`.
    """
    __tracebackhide__ = True
    if not isinstance(result, str):
        whole = _call(result, function, args, kwargs) if _is_function(result) else result
        return _avals(whole, result, function)
    key = _key(result, args, kwargs) if type(function) is FunctionType else None
    known = {} if key is None else _known.setdefault(function, {})
    if key in known:
        return known[key]
    bound = _bound(function, args, kwargs)
    passed = bound.arguments.keys() | _SCALARS
    found = _avals(_evaluate(result, function, bound), result, function)
    if key is not None and _parsed(result)[2] <= passed:  # not of globals and defaults
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known[key] = found
    return found


# What expressions over parameters have declared, by function and what was passed.
_known: weakref.WeakKeyDictionary[FunctionType, dict[Hashable, Any]] = weakref.WeakKeyDictionary()
_MOST_KNOWN = 64  # of a function
_SCALARS = {"bool", "int", "float", "complex"}


def _key(expression: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Hashable:
    leaves, tree = tree_flatten((args, dict(kwargs)))
    try:
        avals = [jax.typeof(leaf) for leaf in leaves]
    except TypeError:  # a static argument
        return None
    x64 = jax.config.jax_enable_x64  # type: ignore[attr-defined]
    return expression, x64, tree, tuple((aval.shape, aval.dtype) for aval in avals)


def _avals(
    declared: Any, result: Result, function: Callable[..., Any]
) -> tuple[tuple[Any, ...], PyTreeDef]:
    __tracebackhide__ = True
    leaves, tree = tree_flatten(declared, is_leaf=lambda leaf: isinstance(leaf, ShapeOf))
    place = f"result={shown(result)} of {_name(function)}"
    sizes = sizes_alone(declared)
    return tuple(_leaf_aval(leaf, place, declared is result, sizes) for leaf in leaves), tree


def result_interface(result: Result) -> Hashable:
    """Return a key of the declared result, equal for results that compile to the same program."""
    if isinstance(result, str):
        return result
    if _is_function(result):
        code = getattr(result, "__code__", None)
        if code is None or result.__closure__ or result.__defaults__ or result.__kwdefaults__:
            return result
        # Not the lambda: rerunning a cell makes a new one.
        return code.co_code, code.co_consts, code.co_names
    leaves, tree = tree_flatten(result)
    return tree, tuple(
        id(leaf) if _shape(leaf) is None else (_shape(leaf), str(getattr(leaf, "dtype", None)))
        for leaf in leaves
    )


def _leaf_aval(leaf: Any, place: str, as_it_is: bool, sizes: Any) -> Any:
    __tracebackhide__ = True
    scalar = _scalar_dtype(leaf)
    if scalar is None:
        shape, dtype = _shape(leaf), getattr(leaf, "dtype", None)
    else:
        shape, dtype = (), scalar
    if shape is None or dtype is None:
        raise ValueError(
            f"cannot use {shown(leaf)} in {place}: it has no shape and dtype. "
            f"{instead_of(leaf, as_it_is, sizes)}"
        )
    dtype = _numpy_dtype(dtype, place)
    try:
        if any(isinstance(size, bool | np.bool_) or size < 0 for size in shape):
            raise TypeError
        return jax_compat.shaped_array(shape, dtype)
    except TypeError:
        raise ValueError(
            f"cannot use the shape {shape!r} in {place}: dimensions must be non-negative integers. "
            "Compute them with // and max(..., 0)."
        ) from None


def _is_function(result: Result) -> bool:
    """Return whether `result` is a function of the arguments; scalar types are callable, too."""
    return callable(result) and not hasattr(result, "shape") and _scalar_dtype(result) is None


def _scalar_dtype(leaf: Any) -> Any:
    """Return the dtype of a scalar type of Python, NumPy or JAX; None for anything else.

    Those of Python are what JAX makes of its numbers: ``float`` is float32, or float64 with x64.
    """
    if not isinstance(leaf, type):
        return None
    if leaf in (bool, int, float, complex):
        return jnp.result_type(leaf)
    if not issubclass(leaf, np.generic):  # jnp.float32
        dtype = getattr(leaf, "dtype", None)
        return dtype if isinstance(dtype, np.dtype) else None
    try:
        return leaf(0).dtype
    except (TypeError, ValueError):  # abstract, such as np.floating
        return None


def sizes_alone(declared: Any) -> tuple[int, ...] | None:
    """Return the shape that was written without a dtype: ``(50, 2)``, ``[3]`` or ``50``."""
    sizes = tuple(declared) if type(declared) in (tuple, list) else (declared,)
    return sizes if sizes and all(type(size) is int for size in sizes) else None


def instead_of(leaf: Any, as_it_is: bool, whole: tuple[int, ...] | None) -> str:
    """Return what to declare in place of a leaf, or of the shape that it is a part of."""
    if isinstance(leaf, str) and as_it_is:
        return f'Write the whole structure as one string: result="({leaf}, ...)".'
    sizes = whole or ((leaf,) if type(leaf) is int else (3,))
    return (
        "Use an array, the name of a parameter, float, or a shape and a dtype: "
        f"jax.ShapeDtypeStruct({sizes}, np.float32)."
    )


def _shape(leaf: Any) -> tuple[Any, ...] | None:
    try:
        return tuple(leaf.shape)
    except (AttributeError, TypeError):  # on a class, `shape` may be a property object
        return None


def _numpy_dtype(dtype: Any, place: str) -> np.dtype:
    """Return a declared dtype as a NumPy dtype.

    Raises:
        TypeError: for PRNG keys.
        ValueError: if JAX has no arrays of this dtype, or only with x64 on.
    """
    __tracebackhide__ = True
    if not isinstance(dtype, str) and jnp.issubdtype(dtype, jax.dtypes.extended):
        raise TypeError(
            f"cannot return {dtype} from a host function ({place}): NumPy has no PRNG keys. "
            "Declare the key's data, jax.eval_shape(jax.random.key_data, key), and pass the result "
            "to jax.random.wrap_key_data."
        )
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found is None or not may_be_of_jax(found):
        raise ValueError(
            f"cannot use the dtype {dtype!r} in {place}: JAX has no arrays of it. Declare a "
            "numeric dtype such as 'float32'."
        )
    held = jax.dtypes.canonicalize_dtype(found)
    if held != found:
        raise ValueError(
            f"cannot return {found.name} while jax_enable_x64 is off ({place}): "
            "result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is disabled. "
            f"Declare {held.name}, or call jax.config.update('jax_enable_x64', True)."
        )
    return found


def _call(
    result: Callable[..., Any],
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:
    __tracebackhide__ = True
    args, kwargs = tree_map(_parameter, args), tree_map(_parameter, dict(kwargs))
    if isinstance(result, Annotated | Inferred | UfuncResult):  # their errors are specific
        return result(*args, **kwargs)
    try:
        return result(*args, **kwargs)
    except Exception as error:
        given = ", ".join([*map(shown, args), *(f"{k}={shown(v)}" for k, v in kwargs.items())])
        raise ValueError(
            f"cannot determine the result of {_name(function)}({given}): result={_name(result)} "
            f"raised {describe(error)}. It gets the arguments of {_name(function)} as shapes and "
            "dtypes, without values."
        ) from error


def _name(function: Callable[..., Any]) -> str:
    return given_name(function) or shown(function)


def _bound(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> inspect.BoundArguments:
    __tracebackhide__ = True
    try:
        signature = plain_signature(function)
    except ValueError as error:
        raise ValueError(
            f"cannot use a result expression for {text_of(function)}: it has no signature. Pass a "
            "function (result=lambda x: x) or jax.ShapeDtypeStruct(shape, dtype)."
        ) from error
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{_name(function)}() {error}") from None


def _parameter(leaf: Any) -> Any:
    try:
        return Parameter(jax.typeof(leaf))
    except TypeError:  # a static argument or default, such as a string, is used as it is
        return leaf


def _value(
    expression: ast.expr, code: CodeType, scope: dict[str, Any], parameters: Mapping[str, Any]
) -> Any:
    """Return what a part of an expression declares; its parameters are each a `Parameter`.

    Where those cannot do what it asks, as in ``z @ w``, JAX works out the shapes and dtypes.
    """
    try:
        return eval(code, scope)
    except (AttributeError, TypeError) as error:
        match expression:
            case ast.Tuple(elts=parts) if not _has_star(parts):
                return tuple(_value(part, _compiled(part), scope, parameters) for part in parts)
            case ast.List(elts=parts) if not _has_star(parts):
                return [_value(part, _compiled(part), scope, parameters) for part in parts]
            case ast.Dict(keys=keys, values=parts) if all(keys):
                names = (eval(_compiled(key), scope) for key in keys if key)
                values = (_value(part, _compiled(part), scope, parameters) for part in parts)
                return dict(zip(names, values, strict=True))
        try:
            return _traced(code, scope, parameters)
        except AttributeError:
            raise error from None


def _compiled(expression: ast.expr) -> CodeType:
    return compile(ast.Expression(expression), "<result>", "eval")


def _has_star(parts: Iterable[ast.expr]) -> bool:
    return any(isinstance(part, ast.Starred) for part in parts)


def _traced(code: CodeType, scope: dict[str, Any], parameters: Mapping[str, Any]) -> Any:
    leaves, tree = tree_flatten(dict(parameters))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Parameter)]
    others: list[Any] = []  # structure, and leaves that are no arrays: they are refused later

    def computed(arrays: list[Any]) -> list[Any]:
        values = list(leaves)
        for place, array in zip(places, arrays, strict=True):
            values[place] = array
        found, structure = tree_flatten(eval(code, {**scope, **tree.unflatten(values)}))
        others[:] = structure, [None if isinstance(one, _ARRAYS) else one for one in found]
        return [one for one in found if isinstance(one, _ARRAYS)]

    structs = [jax.ShapeDtypeStruct(leaves[place].shape, leaves[place].dtype) for place in places]
    avals = iter(jax.eval_shape(computed, structs))
    structure, found = others
    return structure.unflatten(next(avals) if one is None else one for one in found)


@functools.lru_cache
def _parsed(expression: str) -> tuple[ast.expr, CodeType, frozenset[str]]:
    """Return an expression, its code, and the names in it."""
    body = ast.parse(expression.strip(), mode="eval").body
    names = {node.id for node in ast.walk(body) if isinstance(node, ast.Name)}
    return body, _compiled(body), frozenset(names)


def _evaluate(expression: str, function: Callable[..., Any], bound: inspect.BoundArguments) -> Any:
    __tracebackhide__ = True
    # A default that the expression does not name may be of any size, and is not looked at.
    body, code, names = _parsed(expression)
    looked_at = names | {*bound.arguments}
    bound.apply_defaults()
    parameters = {
        name: tree_map(_parameter, value) if name in looked_at else value
        for name, value in bound.arguments.items()
    }
    scope = {
        "jax": jax,
        "jnp": jnp,
        "np": np,
        **getattr(inspect.unwrap(function), "__globals__", {}),
        **parameters,
    }
    try:
        named = {name: parameters[name] for name in names & parameters.keys()}
        declared = _value(body, code, scope, named)
    except Exception as error:
        given = ", ".join(f"{name}={shown(value)}" for name, value in parameters.items())
        words = describe(error).partition("\n")[0].rstrip(".")  # JAX adds where to read more
        raise ValueError(
            f"cannot evaluate result={expression!r} of {_name(function)}({given}): {words}. Use "
            f"the names of its parameters, as in result={next(iter(parameters), 'x')!r}, or "
            "jax.ShapeDtypeStruct(shape, dtype)."
        ) from None
    name = expression.strip()
    if name not in parameters and name.isidentifier() and isinstance(declared, _ARRAYS):
        own = ", ".join(parameters) or "none"
        raise ValueError(
            f"result={expression!r} of {_name(function)} is an array outside of it, and none of "
            f"its parameters ({own}). Use their names, or "
            f"result=jax.ShapeDtypeStruct({name}.shape, {name}.dtype)."
        )
    return declared
