"""The reference has every public name, and each docstring says what all parameters are; its
examples run.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest

import evalwright
from evalwright import extend
from evalwright.core import deprecation
from evalwright.evaluation.call_settings import EvaluationSettings
from evalwright.extend import acting

ROOT = Path(__file__).resolve().parent.parent
PUBLIC = {
    name: getattr(package, name)
    for package in (evalwright, extend)
    for name in package.__all__
    if inspect.isroutine(getattr(package, name))
    or inspect.isclass(getattr(package, name))
}
"""Functions and classes; what constants are is a text below them."""
BLOCK = re.compile(
    r"^(?P<title>Args|Attributes|Returns|Raises):\n(?P<lines>(?:(?: {4}.*)?\n?)+)",
    re.MULTILINE,
)
ENTRY = re.compile(r"^ {4}\*{0,2}(?P<name>\w+): \S", re.MULTILINE)
EXAMPLE = re.compile(r"::\n\n(?P<code>(?: {4}.*\n|\n)+)")

NOT_ARGUMENTS = {"Column": {"memory"}}
"""Fields that a class has and its constructor does not take."""
DESCRIBED_BY_THE_CLASS = {
    "Ask", "Callback", "CommandLine", "Dialect", "LocalModel", "Model", "RemoteModel", "Strategy",
}  # fmt: skip
"""Classes to derive from or to be handed: their constructors are not called."""
OUTLINES = {"ScriptedModel"}
"""Their examples are a list of forms."""


def load_script() -> ModuleType:
    """`scripts/build_site.py`, which is not part of the package."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("build_site", ROOT / "scripts" / "build_site.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blocks_of(public: Any) -> dict[str, list[str]]:
    """The names in each block of a docstring; "Returns" has none."""
    text = inspect.getdoc(public) or ""
    return {
        block["title"]: ENTRY.findall(block["lines"]) for block in BLOCK.finditer(text)
    }


def test_the_reference_has_every_public_name() -> None:
    script = load_script()
    pages = script.reference_pages()
    assert pages["reference"] == "evalwright"
    for module in pages.values():
        text = "\n".join(script.reference(module))
        documented = set(
            re.findall(r"^\.\. (?:auto\w+|data):: (\w+)$", text, re.MULTILINE)
        )
        assert documented == {
            name for name in sys.modules[module].__all__ if name != "__version__"
        }


def test_the_page_for_extensions_has_one_row_for_each_name() -> None:
    tables = (ROOT / "docs" / "reference" / "extend.md").read_text(encoding="utf-8")
    names = [
        name
        for row in re.findall(r"^\| (`.*?) \|", tables, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", row)
    ]
    assert sorted(names) == sorted([*extend.__all__, *acting.__all__])


def test_a_module_that_is_not_there_has_no_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = load_script()
    monkeypatch.setitem(
        script.REFERENCE_PAGES, "reference-other", "evalwright.core.not_there"
    )
    assert "reference-other" not in script.reference_pages()


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_name_the_parameters(name: str) -> None:
    public = PUBLIC[name]
    documented = blocks_of(public)
    if inspect.isclass(public) and (
        issubclass(public, Exception) or name in DESCRIBED_BY_THE_CLASS
    ):
        return
    parameters = [*inspect.signature(public).parameters]
    shown = [
        parameter
        for parameter in parameters
        if not parameter.startswith("_")
        and parameter not in NOT_ARGUMENTS.get(name, ())
    ]
    entries = documented.get("Args", documented.get("Attributes", []))
    if "limit" in parameters and "settings" in entries:
        # The signature lists each setting; the docstring has one entry for all of them.
        entries.remove("settings")
        settings = EvaluationSettings.__annotations__
        shown = [parameter for parameter in shown if parameter not in settings]
    assert entries == shown
    if inspect.isfunction(public) and inspect.signature(
        public
    ).return_annotation not in (None, "None"):
        assert "Returns" in documented


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_begin_with_a_sentence_and_fit_the_page(name: str) -> None:
    lines = (inspect.getdoc(PUBLIC[name]) or "").splitlines()
    assert lines[0].endswith(".") and not any(lines[1:2])
    assert max(map(len, lines)) <= 96


def examples() -> list[tuple[str, str]]:
    documented = {
        name: public for name, public in PUBLIC.items() if name not in OUTLINES
    }
    documented |= {
        name: getattr(deprecation, name) for name in ("deprecated", "renamed_parameter")
    }
    return [
        (name, dedent(example["code"]))
        for name, public in documented.items()
        for example in EXAMPLE.finditer(f"{inspect.getdoc(public)}\n")
    ]


@pytest.mark.parametrize(
    ("name", "code"), examples(), ids=lambda part: part if part.isidentifier() else ""
)
def test_examples_run(name: str, code: str, tmp_path: Path) -> None:
    start = "from evalwright import *\nfrom evalwright.core.deprecation import deprecated, renamed_parameter\n"
    environment = {
        "PYTHONPATH": str(ROOT / "src"),
        "EVALWRIGHT_HOME": str(tmp_path),
        "PATH": "/usr/bin:/bin",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", start + code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{name}:\n{code}\n{done.stderr}"
