"""The house holds: arrows point upwards, start-up is light, files have one subject, public names
are what they are.
"""

from __future__ import annotations

import ast
import gc
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import evalwright
from evalwright import extend
from support.boundary import inside_names
from support.code_style import code_style
from support.runs import make_run

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "evalwright"
# Its programs run in the sandboxes of tasks; some of them are broken on purpose.
LIBRARY = SOURCE / "tasks" / "library"

# A room may import from itself and from rooms above it.
ORDER = [
    "_version", "core", "bounded", "statistics", "models", "engine", "sandboxes", "tools", "strategies", "scorers", "metrics", "tasks", "runs", "trackers", "evaluation",
    "proxy", "analysis", "reports", "entries", "api", "pytest_plugin", "extend", "compat", "cli", "__init__", "__main__",
]  # fmt: skip
# Only these tables name a foreign system, in lines of data; nothing else does outside compat/.
TABLES = {"cli/foreign.py", "cli/foreign_commands.py", "tasks/dialects.py"}
FOREIGN = (
    "evalwright.compat", "lm-eval", "lm_eval", "lm-evaluation-harness", "hhem-leaderboard",
    "open-factual-bench",
)  # fmt: skip
# Strategies and scorers reach models only through the `ask` that they are handed.
FORBIDDEN = {
    "strategies": {"models", "engine"},
    "scorers": {"models", "engine"},
    "metrics": {"models", "engine"},
}

HEAVY = {
    "aiohttp", "datasets", "jinja2", "matplotlib", "numpy", "onnxruntime", "pandas", "pyarrow", "pydantic", "ray", "rich", "scipy",
    "tokenizers", "torch", "transformers", "yaml",
}  # fmt: skip


@cache
def trees() -> dict[Path, ast.Module]:
    """Every file of the package, read once: the garbage collector need not look through millions
    of nodes again and again while they are made, nor later.
    """
    gc.disable()
    try:
        return {
            path: ast.parse(path.read_text(encoding="utf-8"))
            for path in sorted(SOURCE.rglob("*.py"))
            if LIBRARY not in path.parents
        }
    finally:
        gc.freeze()
        gc.enable()


@cache
def nodes_of(tree: ast.Module) -> list[ast.AST]:
    """All nodes of a file, walked once."""
    return list(ast.walk(tree))


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in nodes_of(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            whole = node.module == "evalwright"
            names = (
                [f"evalwright.{alias.name}" for alias in node.names]
                if whole
                else [node.module]
            )
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "evalwright" and len(parts) > 1:
                # What `evalwright` itself gives may be used below `api`.
                yield "api" if parts[1] in evalwright.__all__ else parts[1], node.lineno


def test_imports_point_upwards() -> None:
    rank = {name: place for place, name in enumerate(ORDER)}
    wrong = []
    for path, tree in trees().items():
        own = room(path)
        assert own in rank, f"{path} stands in a room that the house does not know"
        for other, line in imported_rooms(tree):
            allowed = other == own or (
                rank[other] < rank[own] and other not in FORBIDDEN.get(own, set())
            )
            if not allowed and own not in ("__init__", "__main__"):
                wrong.append(f"{path}:{line}: {own} may not import {other}")
    assert not wrong, "\n".join(wrong)


BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""Fields of a statement that hold statements: nothing else has imports in it."""


def imports_at_run_time(tree: ast.AST) -> Iterator[str]:
    """The names that a module imports, also inside its functions, but for those that only type
    checkers read.
    """
    ahead: list[ast.AST] = [tree]
    while ahead:
        node = ahead.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        for block in BLOCKS:
            ahead += getattr(node, block, ())


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(
        ".__init__"
    )


def all_imports(tree: ast.Module) -> Iterator[str]:
    """The names that a module imports, those that only type checkers read included."""
    for node in nodes_of(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def imported_modules(
    imports: Callable[[ast.Module], Iterator[str]],
) -> dict[str, set[str]]:
    """For each module the others of the package that it imports."""
    names = {name_of(path) for path in trees()}
    arrows: dict[str, set[str]] = {}
    for path, tree in trees().items():
        importer = name_of(path)
        modules = arrows[importer] = set()
        for imported in imports(tree):
            name = imported.removeprefix("evalwright.")
            module = name if name in names else name.rpartition(".")[0]
            if (
                imported.startswith("evalwright.")
                and module in names
                and module != importer
            ):
                modules.add(module)
    return arrows


def test_no_circle_of_imports() -> None:
    arrows = imported_modules(imports_at_run_time)

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        ahead = [start]
        while ahead:
            new = arrows[ahead.pop()] - seen
            seen |= new
            ahead += new
        return seen

    circles = sorted(name for name in arrows if name in reached(name))
    assert not circles, f"these modules import each other in a circle: {circles}"


STILL_CIRCLES = {("compat.hret.pipeline", "compat.hret.runner")}
"""Two modules that know each other's types; nothing may be added."""


def test_no_two_modules_import_each_other_even_for_types() -> None:
    """Who reads one of two such modules has to read the other at the same time."""
    arrows = imported_modules(all_imports)
    circles = {
        (module, other)
        for module, others in arrows.items()
        for other in others
        if module < other and module in arrows[other]
    }
    assert not circles - STILL_CIRCLES


MAY_DEFINE = {
    "compat/hret": "names of the toolkit, loaded when they are used",
    "compat/hret/models": "still to be taken apart",
    "compat/lm_eval": "names of the harness, loaded when they are used",
    "compat/sea_helm": "the dialect is the package",
    "extend": "public names, loaded when they are used",
    "models/remote/batch": "loads a provider's batch interface by its name",
    "models/remote/wire": "loads a wire format by its name",
}
"""Packages whose `__init__` defines functions or classes, and why."""


def test_packages_hide_nothing_in_their_init() -> None:
    """Nobody looks for content there: it stands in a file that says its subject."""
    defining = {
        path.parent.relative_to(SOURCE).as_posix()
        for path, tree in trees().items()
        if path.name == "__init__.py"
        and any(
            isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            for node in nodes_of(tree)
        )
    }
    assert not defining - MAY_DEFINE.keys()


def test_only_tables_name_a_foreign_system() -> None:
    for path, tree in trees().items():
        if (
            room(path) in ("compat", "__init__")
            or str(path.relative_to(SOURCE)) in TABLES
        ):
            continue
        prose = {
            id(node.value)
            for node in nodes_of(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in nodes_of(tree):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in prose
            ):
                named = [one for one in FOREIGN if one in node.value]
                assert not named, (
                    f"{path}:{node.lineno} names {named[0]}, which belongs to a table"
                )


WITHOUT_SETTINGS = ("running", "schedule", "recording", "scoring")
"""Files of `evaluation` that carry out a plan, and know nothing of files, flags and shards."""


def test_a_plan_is_carried_out_without_its_settings() -> None:
    sources = {
        "configuration",
        "configuration_file",
        "objects",
        "origins",
        "processes",
        "resolving",
        "settings",
        "sharding",
    }
    for name in WITHOUT_SETTINGS:
        tree = trees()[SOURCE / "evaluation" / f"{name}.py"]
        modules = {
            imported.split(".")[2]
            for imported in imports_at_run_time(tree)
            if imported.startswith("evalwright.evaluation.")
        }
        assert not modules & sources, (
            f"evaluation/{name}.py imports {sorted(modules & sources)}"
        )


MOST_STATEMENTS = 60
"""In a function, those of functions within it counted too: what is longer does more than one
thing.
"""


def test_functions_stay_small() -> None:
    for path, tree in trees().items():
        for node in nodes_of(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                statements = (
                    sum(isinstance(inner, ast.stmt) for inner in ast.walk(node)) - 1
                )
                assert statements <= MOST_STATEMENTS, (
                    f"{path}:{node.lineno} {node.name}: {statements} statements"
                )


MOST_VAGUE_NAMES = 0.01
MOST_EMPTY_NAMES = 0.04
MOST_TOKENS_PER_LINE = 7.6
MOST_UNFORMATTED = 20
"""Of `# fmt: skip`, for tables of data."""


def test_names_and_density() -> None:
    style = code_style(trees(), nodes_of)
    assert style.vague <= MOST_VAGUE_NAMES, (
        "names that do not say what a thing is: tests/support/code_style.py"
    )
    assert style.empty <= MOST_EMPTY_NAMES
    assert style.tokens_per_line <= MOST_TOKENS_PER_LINE
    assert style.unformatted <= MOST_UNFORMATTED


def test_every_module_states_its_idea() -> None:
    assert [
        str(path) for path, tree in trees().items() if not ast.get_docstring(tree)
    ] == []


def test_public_names_are_sorted_and_resolve() -> None:
    names = evalwright.__all__
    assert names == sorted(names)
    assert set(names) == {*" ".join(evalwright._NAMES.values()).split(), "__version__"}
    for name in names:
        assert getattr(evalwright, name) is not None
    assert set(names) <= set(dir(evalwright))


@pytest.mark.parametrize(
    "arguments",
    [
        ["-c", "import evalwright"],
        ["-m", "evalwright", "--help"],
        ["-m", "evalwright", "tasks", "list"],
    ],
)
def test_start_up_loads_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    environment = {
        "PYTHONPATH": str(ROOT / "src"),
        "EVALWRIGHT_HOME": str(tmp_path),
        "PATH": "/usr/bin:/bin",
    }
    for _ in range(
        2
    ):  # the first listing may read the task files; the second must know them
        done = subprocess.run(
            [sys.executable, "-X", "importtime", *arguments],
            capture_output=True,
            text=True,
            env=environment,
            check=True,
        )
    loaded = {
        line.rsplit("|", 1)[-1].strip().split(".")[0]
        for line in done.stderr.splitlines()
        if "|" in line
    }
    assert not loaded & HEAVY, f"loaded at start-up: {sorted(loaded & HEAVY)}"


READING = (
    ["runs", "list"],
    ["runs", "show", "a"],
    ["compare", "a", "b"],
    [
        "leaderboard",
        "a",
        "b",
        "--html",
        "x.html",
        "--markdown",
        "x.md",
        "--csv",
        "x.csv",
        "--pages",
        "pages",
    ],
)


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_reading_finished_runs_loads_no_engine_no_dialect_and_no_http(
    arguments: list[str], tmp_path: Path
) -> None:
    for name in "ab":
        make_run(
            tmp_path / "runs", scores=[1.0, 0.0, 1.0], model=f"demo/{name}", name=name
        )
    script = f"import sys; from evalwright.cli import main; assert main({arguments!r}) == 0; print(*sys.modules, file=sys.stderr)"
    environment = {"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
        cwd=tmp_path,
    )
    loaded = set(done.stderr.split())
    forbidden = (
        "evalwright.engine",
        "evalwright.compat",
        "evalwright.evaluation",
        "evalwright.models.remote",
    )
    assert not [name for name in loaded if name.startswith(forbidden)]
    heavy = {"aiohttp", "pyreqwest", "asyncio", "rich", "yaml", "pydantic"}
    assert not loaded & (heavy if "--html" in arguments else {*heavy, "jinja2"})


MOST_PUBLIC_NAMES = 150
"""In `evalwright.extend`: what a stranger has to look through."""


def test_compat_imports_the_public_lists_alone() -> None:
    """A system of others is held to what a stranger's dialect may use."""
    inside = inside_names()
    assert not inside, (
        f"compat may import only `evalwright` and `evalwright.extend`: {inside}"
    )


def test_the_list_for_extensions_is_short_and_resolves() -> None:
    names = extend.__all__
    assert len(names) <= MOST_PUBLIC_NAMES
    assert set(names) == set(extend._SOURCES)
    assert not set(names) & set(evalwright.__all__)
    for name in names:
        assert getattr(extend, name) is not None
    assert set(names) <= set(dir(extend))
    with pytest.raises(AttributeError, match="nothing_such"):
        getattr(extend, "nothing_such")  # noqa: B009


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", extend.__all__)
def test_a_name_for_extensions_is_documented_and_used(name: str) -> None:
    """Its source has a docstring, docs/reference/extend.md a line; something besides `compat`
    uses it.
    """
    module, source = extend._SOURCES[name]
    base = SOURCE.joinpath(*module.split("."))
    home = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    assert docstring_of(trees()[home], source), f"{name} has no docstring in {home}"
    docs = ROOT / "docs"
    table = text_of(docs / "reference" / "extend.md")
    assert f"`{name}`" in table
    pages = [docs / "dialects.md", docs / "reference" / "extend-examples.md"]
    code = "\n".join(
        block
        for page in pages
        for block in re.findall(
            r"^```python\n(.*?)^```$",
            text_of(page),
            re.MULTILINE | re.DOTALL,
        )
    )
    examples = [text_of(path) for path in (ROOT / "examples").rglob("*.py")]
    word = re.compile(rf"\b{source}\b")
    is_used_here = any(
        source in text_of(path) and word.search(text_of(path))
        for path in trees()
        if path not in (home, SOURCE / "extend" / "__init__.py")
        and room(path) != "compat"
    )
    is_shown = any(re.search(rf"\b{name}\b", text) for text in [code, *examples])
    assert is_used_here or is_shown, f"only compat uses {name}"


def is_overload(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
) -> bool:
    return any(
        isinstance(mark, ast.Name) and mark.id == "overload"
        for mark in node.decorator_list
    )


def docstring_of(tree: ast.Module, name: str) -> str:
    """Of a function or class; or the text after a constant, or after the constants below which
    it stands.
    """
    for place, node in enumerate(tree.body):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        if isinstance(node, kinds) and node.name == name and not is_overload(node):
            return ast.get_docstring(node) or ""
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [getattr(node, "target", None)]
        )
        if any(
            isinstance(target, ast.Name) and target.id == name for target in targets
        ):
            after = tree.body[place + 1]
            is_text = isinstance(after, ast.Expr) and isinstance(
                after.value, ast.Constant
            )
            return str(after.value.value) if is_text else ""  # type: ignore[attr-defined]
    return ""
