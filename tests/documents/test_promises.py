"""Every public name has a row in tests/promises.tsv: a promise, and the tests that hold it."""

import argparse
import ast
import inspect
import re

import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb import host_callback as hcb
from tests import kept
from tests.interface import main

# What a user passes for its own sake, and not to choose how something works.
OBJECTS = {"callback", "fmt", "function"}
COMMAND = "python -m jupyter_jaxcb"


def names():
    """Yield every public name of the package and of host_callback, with its value."""
    for name in dir(jaxcb):
        if name[0] != "_" and not inspect.ismodule(value := getattr(jaxcb, name)):
            yield name, value
    for name in hcb.__all__:
        yield f"host_callback.{name}", getattr(hcb, name)


def keywords():
    """Yield the keywords of these names, each with its name: ``vmap_method=``, ``pure``."""
    for name, value in names():
        if inspect.isfunction(value) or value is jaxcb.watching:
            for one in inspect.signature(value).parameters.values():
                if one.default is not one.empty and one.name not in OBJECTS:
                    yield f"{one.name}=", name


def options(parser):
    """Yield the options and the other arguments of a parser."""
    for action in parser._actions:
        yield action.option_strings[-1] if action.option_strings else action.dest


def magics(from_code):
    """Yield every magic, and its options behind it."""
    for name, function in from_code.all_magics().items():
        magic = from_code.percent(name)
        yield magic
        for option in options(getattr(function, "parser", argparse.ArgumentParser(add_help=False))):
            yield f"{magic} {option}"


def commands(capsys):
    """Yield every command of the command line, and its options behind it."""
    for name in re.findall(r"^    (\w+)  ", help_of(capsys), re.MULTILINE):
        yield f"{COMMAND} {name}"
        for line in re.findall(r"^  (-.*)", help_of(capsys, name), re.MULTILINE):
            option = re.findall(r"(?<!\w)--?[a-z][\w-]*", line.partition("   ")[0])[-1]
            if option != "--help":
                yield f"{COMMAND} {name} {option}"


def help_of(capsys, *words):
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    return capsys.readouterr().out


def test_every_public_name_option_magic_and_command_has_a_row(from_code, capsys):
    promises = kept.promises()
    rows = [promise.name for promise in promises]
    assert len(rows) == len(set(rows))
    public = {name for name, _ in names()} | {keyword for keyword, _ in keywords()}
    public |= {*magics(from_code), *commands(capsys)}
    assert public - set(rows) == set()
    pairs = {(one.name, name) for one in promises for name in one.of.split()}
    assert pairs == set(keywords())
    assert {name for name in set(rows) - public if "." not in name} == set()  # methods have one


def test_every_row_says_what_is_promised_and_which_tests_hold_it():
    for promise in kept.promises():
        assert promise.sentence, promise.name
        assert promise.tests or promise.goes, promise.name
        for test in promise.tests:
            file, _, function = test.partition("::")
            module = ast.parse((kept.ROOT / file).read_text("utf-8"))
            assert function in [getattr(node, "name", "") for node in module.body], test
