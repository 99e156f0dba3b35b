"""Turn a declared result (a structure, an expression over parameters, a function) into avals."""

from __future__ import annotations

import ast
import functools
import inspect
import math
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
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
from ._array import kind_of, may_be_of_jax, shown
from ._inferred import INFER, Inferred, is_elementwise, ufunc_result

_ARRAYS = (np.ndarray, jax.Array)
_SCALARS = {"bool", "int", "float", "complex"}
_SCOPE = {"jax": jax, "jnp": jnp, "np": np}
# What expressions have declared, by function and what was passed.
_known: weakref.WeakKeyDictionary[FunctionType, dict[Hashable, Any]] = weakref.WeakKeyDictionary()
_MOST_KNOWN = 64  # of a function


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
        sizes = super().__getitem__(index)
        return ShapeOf(sizes, self.dtype) if isinstance(sizes, tuple) else sizes

    def __add__(self, other: tuple[int, ...]) -> ShapeOf:  # type: ignore[override]
        return ShapeOf((*self, *other), self.dtype)

    def __radd__(self, other: tuple[int, ...]) -> ShapeOf:
        return ShapeOf((*other, *self), self.dtype)


class Parameter:
    """A parameter inside a result expression: shape, dtype, ndim and size, but no values.

    ``z[0]`` and ``z[1:]`` are parameters, too: the elements of ``z`` that they select.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.dtype = dtype
        self.shape = ShapeOf(shape, dtype)
        self.ndim = len(shape)
        self.size = math.prod(shape)

    def __getitem__(self, index: Any) -> Parameter:
        for part in index if isinstance(index, tuple) else (index,):
            if not isinstance(part, int | np.integer | slice | type(None) | type(...)):
                raise TypeError(
                    "a parameter has no values in a result expression, and takes only integers "
                    "and slices as an index"
                )
        without_memory = np.broadcast_to(np.empty((), bool), tuple(self.shape))
        return Parameter(without_memory[index].shape, self.dtype)

    def __iter__(self) -> Iterator[Parameter]:
        return (self[place] for place in range(self.shape[0]))

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


def result_avals(
    result: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
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
        whole = _called(result, function, args, kwargs) if _is_function(result) else result
        return _avals(whole, result, function)
    key = _key(result, args, kwargs) if type(function) is FunctionType else None
    known = {} if key is None else _known.setdefault(function, {})
    if key in known:
        return known[key]
    whole, fixed = _evaluated(result, function, args, kwargs)
    avals = _avals(whole, result, function)
    if key is not None and fixed:
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known[key] = avals
    return avals


def _key(expression: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Hashable:
    leaves, tree = tree_flatten((args, dict(kwargs)))
    try:
        avals = [jax.typeof(leaf) for leaf in leaves]
    except TypeError:  # a static argument
        return None
    x64 = jax.config.jax_enable_x64  # type: ignore[attr-defined]
    return expression, x64, tree, tuple((aval.shape, aval.dtype) for aval in avals)


def _called(
    result: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Call a result that is a function; `Annotated`, `Inferred` and ufuncs word their errors."""
    __tracebackhide__ = True
    args, kwargs = tree_map(_parameter, args), tree_map(_parameter, dict(kwargs))
    if isinstance(result, Annotated):
        return result(*args, **kwargs)
    if isinstance(result, Inferred):
        return result(function, args, kwargs)
    if is_elementwise(result):
        return ufunc_result(result, *args, **kwargs)
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


def _parameter(leaf: Any) -> Any:
    try:
        aval = jax.typeof(leaf)
    except TypeError:  # a static argument or default, such as a string, is used as it is
        return leaf
    return Parameter(aval.shape, aval.dtype)


@functools.lru_cache
def parsed(expression: str) -> tuple[Any, frozenset[str]]:
    """Return an expression as a structure whose leaves are code, and the names in it.

    The structure is that of the tuples, lists and dicts which the expression displays.

    Raises:
        SyntaxError, ValueError: it is no expression.
    """
    body = ast.parse(expression.strip(), mode="eval").body
    names = {node.id for node in ast.walk(body) if isinstance(node, ast.Name)}
    return _parts(body), frozenset(names)


def _parts(node: ast.expr) -> Any:
    match node:
        case ast.Tuple(elts=parts) if not any(isinstance(part, ast.Starred) for part in parts):
            return tuple(map(_parts, parts))
        case ast.List(elts=parts) if not any(isinstance(part, ast.Starred) for part in parts):
            return list(map(_parts, parts))
        case ast.Dict(keys=keys) if all(isinstance(key, ast.Constant) for key in keys):
            names = [ast.literal_eval(key) for key in keys if key]
            return dict(zip(names, map(_parts, node.values), strict=True))
    return compile(ast.Expression(node), "<result>", "eval")


def _evaluated(
    expression: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, bool]:
    """Return what an expression declares, and whether it always does for such arguments."""
    __tracebackhide__ = True
    try:
        signature = plain_signature(function)
    except ValueError as error:
        raise ValueError(
            f"cannot use a result expression for {text_of(function)}: it has no signature. Pass a "
            "function (result=lambda x: x) or jax.ShapeDtypeStruct(shape, dtype)."
        ) from error
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{_name(function)}() {error}") from None
    parts, names = parsed(expression)
    passed = {*bound.arguments}
    looked_at = names | passed  # other defaults may be of any size
    bound.apply_defaults()
    parameters = {
        name: tree_map(_parameter, value) if name in looked_at else value
        for name, value in bound.arguments.items()
    }
    scope = {**_SCOPE, **getattr(inspect.unwrap(function), "__globals__", {}), **parameters}
    named = {name: parameters[name] for name in names & parameters.keys()}
    try:
        declared = tree_map(functools.partial(_value, scope=scope, parameters=named), parts)
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
    others = names - passed - _SCALARS  # globals and defaults may change
    return declared, all(name in _SCOPE and scope[name] is _SCOPE[name] for name in others)


def _value(code: CodeType, scope: dict[str, Any], parameters: dict[str, Any]) -> Any:
    """Return what a part of an expression declares; its parameters are each a `Parameter`.

    Where those cannot do what it asks, as in ``z @ w``, JAX works out the shapes and dtypes.
    """
    try:
        return eval(code, scope)
    except (AttributeError, TypeError) as error:
        reason = error
    leaves, tree = tree_flatten(parameters)
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Parameter)]
    declared = []

    def compute(arrays: list[Any]) -> None:
        values = list(leaves)
        for place, array in zip(places, arrays, strict=True):
            values[place] = array
        computed = eval(code, {**scope, **tree.unflatten(values)})
        declared.append(tree_map(_parameter_for, computed))

    structs = [jax.ShapeDtypeStruct(leaves[place].shape, leaves[place].dtype) for place in places]
    try:
        jax.eval_shape(compute, structs)
    except AttributeError:
        raise reason from None
    return declared[0]


def _parameter_for(leaf: Any) -> Any:
    return Parameter(leaf.shape, leaf.dtype) if isinstance(leaf, _ARRAYS) else leaf


def _avals(
    declared: Any, result: Any, function: Callable[..., Any]
) -> tuple[tuple[Any, ...], PyTreeDef]:
    __tracebackhide__ = True
    leaves, tree = tree_flatten(declared, is_leaf=lambda leaf: isinstance(leaf, ShapeOf))
    place = f"result={shown(result)} of {_name(function)}"
    avals = []
    for leaf in leaves:
        dtype = _scalar_dtype(leaf)
        shape = () if dtype is not None else _shape(leaf)
        dtype = getattr(leaf, "dtype", None) if dtype is None else dtype
        if shape is None or dtype is None:
            raise ValueError(
                f"cannot use {shown(leaf)} in {place}: it has no shape and dtype. "
                f"{instead_of(leaf, declared is result, sizes_alone(declared))}"
            )
        dtype = _numpy_dtype(dtype, place)
        try:
            if any(isinstance(size, bool | np.bool_) or size < 0 for size in shape):
                raise TypeError
            avals.append(jax_compat.shaped_array(shape, dtype))
        except TypeError:
            raise ValueError(
                f"cannot use the shape {shape!r} in {place}: dimensions must be non-negative "
                "integers. Compute them with // and max(..., 0)."
            ) from None
    return tuple(avals), tree


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
        declared = np.dtype(dtype)
    except TypeError:
        declared = None
    if declared is None or not may_be_of_jax(declared):
        raise ValueError(
            f"cannot use the dtype {dtype!r} in {place}: JAX has no arrays of it. Declare a "
            "numeric dtype such as 'float32'."
        )
    held = jax.dtypes.canonicalize_dtype(declared)
    if held != declared:
        raise ValueError(
            f"cannot return {declared.name} while jax_enable_x64 is off ({place}): "
            "result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is disabled. "
            f"Declare {held.name}, or call jax.config.update('jax_enable_x64', True)."
        )
    return declared


def exact_avals(result_shape: Any) -> tuple[tuple[Any, ...], PyTreeDef]:
    """Return the flat avals and the structure that a ``result_shape`` declares.

    That of `host_callback.call` may have numbers as leaves, and 64 bits, which are narrowed.

    Raises:
        ValueError: if a leaf is not a number and has no shape and dtype.
    """
    __tracebackhide__ = True
    leaves, tree = tree_flatten(result_shape)
    avals = []
    for leaf in leaves:
        number = np.asarray(leaf) if isinstance(leaf, bool | int | float | complex) else leaf
        try:
            dtype = np.dtype(number.dtype)
        except (AttributeError, TypeError):  # the dtype of a PRNG key is not a NumPy dtype
            dtype = None
        if dtype is None or not kind_of(dtype) or not hasattr(number, "shape"):
            raise ValueError(
                f"cannot use {leaf!r} in result_shape. The values must be either numeric scalars, "
                "or must have 'shape' and 'dtype' attributes: pass jax.ShapeDtypeStruct(shape, "
                "dtype)."
            )
        dtype = jax.dtypes.canonicalize_dtype(dtype)
        avals.append(jax_compat.shaped_array(tuple(number.shape), dtype))
    return tuple(avals), tree


def result_interface(result: Any) -> Hashable:
    """Return a key of the declared result, equal for results that compile to the same program."""
    if isinstance(result, str):
        return result
    if isinstance(result, Inferred):
        return INFER
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


def _is_function(result: Any) -> bool:
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


def _shape(leaf: Any) -> tuple[Any, ...] | None:
    try:
        return tuple(leaf.shape)
    except (AttributeError, TypeError):  # on a class, `shape` may be a property object
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
