import pytest

"""%load_ext, %reload_ext, %unload_ext: unloading undoes everything that loading did."""

SNAPSHOT = """
import jax, jax._src.interpreters.pxla as pxla, jax._src.monitoring as monitoring
import jax._src.api as api, jax._src.interpreters.mlir as mlir, sys
def snapshot():
    shell = get_ipython()
    return {
        "config": dict(jax.config.values),
        "jax": {name: id(getattr(jax, name)) for name in dir(jax)},
        "lowering": id(pxla.lower_sharding_computation),
        "listeners": len(monitoring.get_event_duration_listeners()),
        "running": id(pxla.ExecuteReplicated.__call__),
        "post hook": (api._post_hook_state.value, api._post_hook_state.get_global()),
        "error": id(jax.errors.JaxRuntimeError.__init__),
        "excepthook": sys.excepthook,
        "while": mlir._lowerings[jax.lax.while_p].rule,
        "custom": (shell.custom_exceptions, "CustomTB" in vars(shell)),
        "hooks": {name: len(hooks) for name, hooks in shell.events.callbacks.items()},
        "magics": {kind: set(names) for kind, names in shell.magics_manager.magics.items()},
        "registry": set(shell.magics_manager.registry),
        "configurables": len(shell.configurables),
        "formatters": len(shell.display_formatter.mimebundle_formatter.type_printers),
        "names": {name for name in shell.user_ns if not name.startswith("_")},
    }
"""


def differences(kernel, expression):
    return kernel.run(f"[key for key in before if before[key] != ({expression})[key]]").value


def test_unloading_leaves_everything_as_it_was(fresh_kernel):
    kernel = fresh_kernel()
    kernel.run(SNAPSHOT)
    kernel.run("%unload_ext nothing")  # IPython registers its magics for extensions at first use
    kernel.run("import jupyter_jaxcb; before, now = None, None; before = snapshot()")
    kernel.run("%load_ext jupyter_jaxcb")
    kernel.run("%%jax_callback pure --result x\ndef double(x): return 2 * x\njax.jit(double)(1.0)")
    kernel.run("%%jax_callback tap\ndef look(x): pass\njax.jit(look)(1.0)")
    changed = differences(kernel, "snapshot()")  # the check itself can fail
    assert "hooks" in changed and "while" in changed
    kernel.run("%unload_ext jupyter_jaxcb")
    kernel.run("del double, look")
    assert differences(kernel, "snapshot()") == "[]"


def test_compiled_programs_still_run_after_unloading(kernel):
    kernel.run("%%jax_callback pure --result x\ndef double(x): return 2 * x")
    assert kernel.run("f = jax.jit(double); float(f(3.0))").trace
    kernel.run("%unload_ext jupyter_jaxcb")
    ran = kernel.run("float(f(4.0))")
    assert (ran.value, ran.traces) == ("8.0", [])
    assert "not found" in kernel.run("%%jax_callback pure\ndef f(x): return x").text


@pytest.mark.long
def test_cell_that_loads_the_extension_is_recorded_from_that_line_on(fresh_kernel):
    ran = fresh_kernel().run(
        "import jax, jupyter_jaxcb as jaxcb\n"
        "double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)\n"
        "%load_ext jupyter_jaxcb\n"
        "double(1.0)"
    )
    assert [site["calls"] for site in ran.sites] == [1]


@pytest.mark.long
def test_extension_and_its_cells_do_not_start_jax(fresh_kernel):
    """JAX options and `jax.distributed` must be set before JAX is first used."""
    kernel = fresh_kernel()
    kernel.run("%load_ext jupyter_jaxcb\nimport jax")
    kernel.run("%%jax_callback pure --result x\ndef double(x): return 2 * x")
    kernel.run("%%jax_record r\n1 + 1")
    kernel.run("jax.config.update('jax_num_cpu_devices', 3)")
    assert kernel.run("len(jax.devices())").value == "3"


def test_terminal_shows_the_host_trace_with_times(terminal):
    out = terminal(
        "%load_ext jupyter_jaxcb\nimport jax",
        "%%jax_callback pure --result x\ndef double(x): return 2 * x",
        "jax.jit(double)(1.0)",
        "%unload_ext jupyter_jaxcb",
        "jax.jit(double)(2.0)",
    )
    assert "double · pure · 1 call · () → () · " in out
    assert "µs" in out
    assert out.count("double · pure") == 1
