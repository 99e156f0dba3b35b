"""With a JAX that lacks a private API, the import fails clearly or only some features are lost."""

from textwrap import dedent

import pytest

NEEDED = [
    "callback._callback_op_sharding",
    "core.abstract_token",
    "dispatch.apply_primitive",
    "dispatch.runtime_tokens.clear",
    "effects.partial_eval_kept_effects",
    "interpreters.mlir.set_sharding",
]


@pytest.fixture(scope="module")
def refused(in_process):
    """Return for each name the error that importing the package raises without it."""
    return in_process(f"""
        import importlib, json, operator, sys, jax
        raised = {{}}
        for name in {NEEDED}:
            owner, attribute = name.rsplit(".", 1)
            importlib.import_module("jax._src." + owner.removesuffix(".runtime_tokens"))
            owner = operator.attrgetter(owner)(jax._src)
            owner = owner if attribute in vars(owner) else type(owner)
            taken = vars(owner)[attribute]
            delattr(owner, attribute)
            try:
                import jupyter_jaxcb
            except ImportError as error:
                raised[name] = str(error)
            setattr(owner, attribute, taken)
            for module in [one for one in sys.modules if one.partition(".")[0] == "jupyter_jaxcb"]:
                del sys.modules[module]
        import jupyter_jaxcb  # with all of them back
        print(json.dumps(raised))
    """).value


@pytest.mark.parametrize("name", NEEDED)
def test_missing_required_api_fails_the_import_and_names_supported_versions(refused, name):
    message = refused[name]
    assert message.startswith("jupyter_jaxcb does not support JAX")
    assert name.rsplit(".", 1)[1] in message
    assert "JAX 0.10.0 to 0.12.0" in message


PROGRAM = """
    import numpy as np, jupyter_jaxcb as jaxcb
    results = []
    with jaxcb.record() as r:
        f = jax.jit(lambda x: jaxcb.pure_callback(np.sin, x, x))
        results.append(float(f(np.float32(0))))
        jaxcb.debug_callback(lambda x: results.append(type(x).__name__), 1.0, arrays="jax")
        jax.effects_barrier()
    print(results, len(r.recording), r.recording.environment["backend"])
"""


@pytest.mark.parametrize(
    "name",
    [
        "api._post_hook_state",
        "interpreters.pxla.ExecuteReplicated",
        "interpreters.pxla.lower_sharding_computation",
        "mesh.use_abstract_mesh",
        "sharding_impls._internal_use_concrete_mesh",
        "xla_bridge.backends_are_initialized",
    ],
)
def test_calls_work_without_an_api_that_has_a_fallback(in_process, name):
    """JAX needs these itself, so they are hidden only from this package."""
    owner, attribute = name.rsplit(".", 1)
    hide = f"""
        import sys, types
        import jupyter_jaxcb
        real = importlib.import_module("jax._src.{owner}")
        rest = {{name: value for name, value in vars(real).items() if name != "{attribute}"}}
        hidden = types.SimpleNamespace(**rest)
        users = [
            (module, name) for place, module in sys.modules.items()
            if place.startswith("jupyter_jaxcb.jax_compat.")
            for name, value in vars(module).items() if value is real
        ]
        assert users
        for module, name in users:
            setattr(module, name, hidden)
    """
    done = in_process("import importlib, jax\n" + dedent(hide) + dedent(PROGRAM))
    assert done.stdout == "[0.0, 'ArrayImpl'] 2 cpu\n", done.stderr
