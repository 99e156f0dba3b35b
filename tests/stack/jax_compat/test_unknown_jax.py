"""In a JAX that lacks something private: a clear ImportError, or a smaller service that works."""

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
    """By name, what the import of the package raises without it: one after the other taken away."""
    return in_process(f"""
        import importlib, json, operator, sys, jax
        said = {{}}
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
                said[name] = str(error)
            setattr(owner, attribute, taken)
            for module in [one for one in sys.modules if one.partition(".")[0] == "jupyter_jaxcb"]:
                del sys.modules[module]
        import jupyter_jaxcb  # with all of them back
        print(json.dumps(said))
    """).value


@pytest.mark.parametrize("name", NEEDED)
def test_what_has_no_fallback_fails_the_import_and_names_versions_that_work(refused, name):
    said = refused[name]
    assert said.startswith("jupyter_jaxcb ") and "does not know JAX" in said
    assert name.rsplit(".", 1)[1] in said
    assert "JAX 0.8.0 to 0.12.0" in said


PROGRAM = """
    import numpy as np, jupyter_jaxcb as jaxcb
    answered = []
    with jaxcb.record() as r:
        f = jax.jit(lambda x: jaxcb.pure_callback(np.sin, x, x))
        answered.append(float(f(np.float32(0))))
        jaxcb.debug_callback(lambda x: answered.append(type(x).__name__), 1.0, arrays="jax")
        jax.effects_barrier()
    print(answered, len(r.recording), r.recording.environment["backend"])
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
def test_what_has_a_fallback_is_not_missed_by_calls(in_process, name):
    """JAX itself needs these as well, so they are hidden from ours alone."""
    owner, attribute = name.rsplit(".", 1)
    hide = f"""
        import sys, types
        import jupyter_jaxcb
        real = importlib.import_module("jax._src.{owner}")
        rest = {{name: value for name, value in vars(real).items() if name != "{attribute}"}}
        hidden = types.SimpleNamespace(**rest)
        users = [
            (module, name) for place, module in sys.modules.items()
            if place.startswith("jupyter_jaxcb.stack.jax_compat.")
            for name, value in vars(module).items() if value is real
        ]
        assert users
        for module, name in users:
            setattr(module, name, hidden)
    """
    done = in_process("import importlib, jax\n" + dedent(hide) + dedent(PROGRAM))
    assert done.stdout == "[0.0, 'ArrayImpl'] 2 cpu\n", done.stderr
