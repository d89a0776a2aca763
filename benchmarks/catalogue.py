"""The benchmarks that `python -m benchmarks` runs, from `catalogue.toml` and their own files."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent

CORE_MODULES = ("aiohttp", "click", "jinja2", "numpy", "pydantic", "scipy", "yaml")
"""Modules that Evalwright itself needs, so all benchmarks do."""

EXTRAS = {
    **dict.fromkeys(CORE_MODULES, "."),
    "hypothesis": ".[dev]",
    "onnx": ".[dev]",
    "psycopg": ".[postgres]",
    "pyarrow": ".[parquet]",
    "pytest": ".[dev]",
    "ray": ".[ray]",
    "statsmodels": ".[dev]",
    "torch": ".[hf]",
    "transformers": ".[hf]",
}
"""What to install for a module, by the module's name."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark.

    Attributes:
        name: its name on the command line.
        path: its file.
        minutes: how long it takes with its defaults on two cores, in minutes.
        modules: Python modules that it imports.
        needs: what else it needs: programs, data; "" for nothing.
        peers: programs that it installs in environments of their own, to be measured beside ours.
        quick: options of a run that takes a second or two; None where there is none.
    """

    name: str
    path: Path
    minutes: int
    modules: tuple[str, ...] = ()
    needs: str = ""
    peers: tuple[str, ...] = ()
    quick: tuple[str, ...] | None = None

    @property
    def module(self) -> str:
        """The module of its file, as benchmarks import each other."""
        return ".".join(self.path.relative_to(HERE).with_suffix("").parts)

    @property
    def documentation(self) -> str:
        """The documentation of its file, which is read without importing it."""
        tree = ast.parse(self.path.read_text(encoding="utf-8"))
        return ast.get_docstring(tree) or ""

    @property
    def subject(self) -> str:
        """What it measures: the first sentence of its documentation."""
        paragraph = self.documentation.split("\n\n")[0]
        return " ".join(paragraph.split()).rstrip(".")

    @property
    def needed_modules(self) -> tuple[str, ...]:
        """All modules that have to be installed."""
        return (*CORE_MODULES, *self.modules)


def missing_modules(names: Iterable[str]) -> list[str]:
    """Return those of the modules that are not installed."""
    return [name for name in names if not find_spec(name)]


def read_catalogue() -> dict[str, Benchmark]:
    """Return all benchmarks by name."""
    tables = tomllib.loads((HERE / "catalogue.toml").read_text(encoding="utf-8"))
    benchmarks = {}
    for name, table in sorted(tables.items()):
        quick = table.get("quick")
        benchmarks[name] = Benchmark(
            name=name,
            path=HERE / table.get("file", f"{name}.py"),
            minutes=table["minutes"],
            modules=tuple(table.get("modules", ())),
            needs=table.get("needs", ""),
            peers=tuple(table.get("peers", ())),
            quick=None if quick is None else tuple(quick),
        )
    return benchmarks


def install_command(modules: list[str]) -> str:
    """Return the command that installs missing modules."""
    targets = sorted({EXTRAS.get(name, name) for name in modules})
    return "pip install " + " ".join(f"-e '{target}'" for target in targets)
