"""The reference has every public name with an example, and every magic with its options."""

import inspect
import re

from IPython.core.interactiveshell import InteractiveShell

import jupyter_jaxcb
from jupyter_jaxcb import Recording, host_callback, testing

DIRECTIVE = re.compile(r"^\.\. (?:auto\w+|py:\w+):: ([\w.]+)", re.MULTILINE)


def public_names(from_code):
    """Yield all names that a user may import, and the classes of the values they return."""
    package = jupyter_jaxcb.__name__
    for name in dir(jupyter_jaxcb):
        if name[0] != "_" and not inspect.ismodule(getattr(jupyter_jaxcb, name)):
            yield f"{package}.{name}"
    for name in host_callback.__all__:
        yield f"{package}.host_callback.{name}"
    for name, value in vars(testing).items():
        if name[0] != "_" and getattr(value, "__module__", "") == testing.__name__:
            yield f"{package}.testing.{name}"
    for kind in from_code.reached():
        yield f"{package}.recording.{kind.__name__}"
    for name in ("HostCall", "Matrix", "Finding", "VmapMethod"):
        yield f"{package}.recording.{name}"
    for name in ("Callback", "PureCallback", "BufferCallback"):
        yield f"{package}.register.{name}"
    yield f"{package}.stack.ResultError"
    yield f"{package}.diagnostics.Record"


def public_value(name):
    value = jupyter_jaxcb
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def test_every_public_name_is_in_the_reference_once(from_code, pages):
    documented = [name for text in pages.values() for name in DIRECTIVE.findall(text)]
    assert sorted(set(documented)) == sorted(documented)
    assert not set(public_names(from_code)) - set(documented)


def test_every_name_in_the_reference_exists(pages):
    for text in pages.values():
        for name in DIRECTIVE.findall(text):
            assert public_value(name) is not None


def test_every_function_in_the_reference_has_an_example_and_its_arguments(pages):
    missing = []
    for text in pages.values():
        blocks = "".join(re.findall(r"^```(?:python|text)\n(.*?)^```", text, re.M | re.S))
        for name in DIRECTIVE.findall(text):
            value = public_value(name)
            if not inspect.isfunction(value):
                continue
            docstring = inspect.getdoc(value)
            short = name.rpartition(".")[2]
            if ">>>" not in docstring and short not in blocks and "_ipython_" not in short:
                missing.append((name, "example"))
            for parameter in inspect.signature(value).parameters:
                if not re.search(rf"^ +\**{parameter}: ", docstring, re.M) and parameter != "shell":
                    missing.append((name, parameter))
    assert not missing


def test_every_public_class_has_an_example():
    public = {name: getattr(jupyter_jaxcb, name) for name in dir(jupyter_jaxcb) if name[0] != "_"}
    classes = {name: one for name, one in public.items() if isinstance(one, type)}
    assert classes
    assert [name for name, one in classes.items() if ">>>" not in (one.__doc__ or "")] == []


def test_every_method_of_a_recording_is_in_the_reference(pages):
    page = pages["reference/recording.md"]
    methods = {
        name
        for name, value in vars(Recording).items()
        if name[0] != "_" and (callable(value) or isinstance(value, property | staticmethod))
    }

    assert methods and not {name for name in methods if not re.search(rf"\b{name}\b", page)}


def test_page_of_the_magics_has_every_registered_magic(from_code, pages):
    shell = InteractiveShell()
    before = {kind: set(names) for kind, names in shell.magics_manager.magics.items()}
    shell.run_line_magic("load_ext", "jupyter_jaxcb")
    try:
        prefixes = {"line": "%", "cell": "%%"}
        loaded = {
            f"{prefixes[kind]}{name}"
            for kind, names in shell.magics_manager.magics.items()
            for name in set(names) - before[kind]
        }
    finally:
        shell.run_line_magic("unload_ext", "jupyter_jaxcb")
        InteractiveShell.clear_instance()
    documented = re.findall(r"^## (%.*)$", pages["magics.md"], re.MULTILINE)
    assert {name for names in documented for name in names.split(", ")} == loaded


def test_page_of_the_magics_has_every_option_of_the_parsers(from_code, pages):
    sections = re.split(r"^## (?=%)", pages["magics.md"], flags=re.MULTILINE)[1:]
    for name, function in from_code.all_magics().items():
        (section,) = [text for text in sections if re.match(rf"%+{name}\b", text)]
        for option in re.findall(r"--[\w-]+", getattr(function, "__doc__", "")):
            assert f"`{option}`" in section or f"``{option}``" in section
        parser = getattr(function, "parser", None)
        if parser is not None:
            for word in re.findall(r"\[(-[\w-]+)", parser.format_usage()):
                assert f"| `{word}` |" in section
