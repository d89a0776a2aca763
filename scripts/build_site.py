"""Builds the documentation site: the pages of `docs/`, the reference of `evalwright`, and the
explorer of a real run.

    python -m scripts.build_site FOLDER

`docs/` is plain Markdown that reads well without a site, so what a site needs beyond it is added to
a copy. Wants the extra `docs`.
"""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
SOURCE = "https://github.com/evalwright/evalwright/blob/main"

CONF = '''
project = "Evalwright"
html_title = "Evalwright"
copyright = "The Evalwright authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_extra_path = ["extra"]
exclude_patterns = ["extra"]
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
myst_heading_anchors = 4
smartquotes_action = "D"


def setup(app):
    """Show the signatures that docstrings describe: not the overloads that type checkers read, and
    `**settings` in place of each setting's name.
    """
    import evalwright
    from sphinx.pycode import ModuleAnalyzer

    for function in (evalwright.evaluate, evalwright.evaluate_async):
        del function.__signature__  # autodoc seeks its defaults in the source, where they are not

    analyze = ModuleAnalyzer.analyze

    def analyze_without_overloads(analyzer):
        analyze(analyzer)
        analyzer.overloads = {}

    ModuleAnalyzer.analyze = analyze_without_overloads
'''

EXPLORER = """# A run in the explorer

Two small models on bundled questions, as `evalwright export site` writes them.
<a href="PLACE">Open it on a page of its own</a>.

<iframe src="PLACE" title="The explorer"
  style="width: 100%; height: 75vh; border: 1px solid"></iframe>
"""
PLACE = "explorer/index.html"

REFERENCE_PAGES = {"reference": "evalwright", "reference-extend": "evalwright.extend"}
"""Public modules, by the page that lists what is in their `__all__`."""
REFERENCE_KINDS = {
    "Functions and decorators": ".. autofunction:: {name}\n",
    "Classes": ".. autoclass:: {name}\n   :members:\n   :special-members: __call__\n",
    "Errors": ".. autoexception:: {name}\n   :show-inheritance:\n",
}
"""The parts of a page, and how each name in them is written."""
CONSTANTS = "Constants and types"
"""What has no docstring at run time: the text below it in its file is shown."""

_FENCED_FILE = re.compile(
    r"^```(?P<language>\w*)\n(?:#|<!--|//) file: (?P<name>[\w./-]+)(?: -->)?\n",
    re.MULTILINE,
)
_LINK = re.compile(r"\]\((?P<target>[^)#\s:]+)(?P<rest>#[^)\s]*)?\)")
_ROW = re.compile(r"^\| (?P<about>[^|]+) \| (?P<pages>.*) \|$", re.MULTILINE)


def build(into: Path) -> None:
    """Write the site into a folder.

    Raises CalledProcessError where a command fails or a page has a fault.
    """
    with TemporaryDirectory() as temporary:
        pages = Path(temporary) / "pages"
        shutil.copytree(ROOT / "docs", pages)
        for page in pages.rglob("*.md"):
            page.write_text(
                _for_a_site(page.read_text(encoding="utf-8"), page.relative_to(pages)),
                encoding="utf-8",
            )
        index = pages / "index.md"
        index.write_text(
            index.read_text(encoding="utf-8") + "\n".join(_contents(index)),
            encoding="utf-8",
        )
        (pages / "conf.py").write_text(CONF)
        for name, module in reference_pages().items():
            (pages / f"{name}.rst").write_text("\n".join(reference(module)))
        (pages / "explorer-of-a-run.md").write_text(EXPLORER.replace("PLACE", PLACE))
        _explorer(Path(temporary), pages / "extra" / Path(PLACE).parent)
        into.parent.mkdir(parents=True, exist_ok=True)
        _run("sphinx", "-W", "--keep-going", "-q", "-b", "html", str(pages), str(into))


def _for_a_site(text: str, page: Path) -> str:
    """Files in a page get their names as captions; outputs are plain text; links to files outside
    of `docs/` lead to the source.
    """

    def fenced(match: re.Match[str]) -> str:
        # What Pygments does not know, and JSON Lines, which are no JSON.
        language = (
            "text" if match["language"] in ("csv", "json", "") else match["language"]
        )
        return f"```{{code-block}} {language}\n:caption: {match['name']}\n\n"

    def link(match: re.Match[str]) -> str:
        target = (ROOT / "docs" / page.parent / match["target"]).resolve()
        if target.is_relative_to(ROOT / "docs"):
            return match[0]
        return f"]({SOURCE}/{target.relative_to(ROOT)}{match['rest'] or ''})"

    text = text.replace("\n```output\n", "\n```text\n")
    return _LINK.sub(link, _FENCED_FILE.sub(fenced, text))


def _contents(index: Path) -> Iterator[str]:
    """The side bar: the lines and links of the index's table, then what only the site has."""
    text = index.read_text(encoding="utf-8")
    groups = {"tutorials": re.findall(r"\((tutorials/[\w-]+)\.md\)", text)}
    groups |= {
        row["about"]: re.findall(r"\(([\w/-]+)\.md\)", row["pages"])
        for row in _ROW.finditer(text)
        if row["about"] != "about"
    }
    groups["the code"] += [*reference_pages(), "explorer-of-a-run"]
    for about, pages in groups.items():
        caption = about[0].upper() + about[1:]
        yield "\n".join(
            ["\n```{toctree}", ":hidden:", f":caption: {caption}\n", *pages, "```"]
        )


def reference_pages() -> dict[str, str]:
    """The public modules that there are, by the name of their page."""
    return {
        page: name
        for page, name in REFERENCE_PAGES.items()
        if find_spec(name) is not None
    }


def reference(module_name: str) -> Iterator[str]:
    """The page of a module: everything in its `__all__` by kind, with the docstrings."""
    module = import_module(module_name)
    names_by_kind: dict[str, list[str]] = {kind: [] for kind in REFERENCE_KINDS}
    constants = []
    for name in sorted(module.__all__, key=str.lower):
        if kind := kind_of_name(getattr(module, name)):
            names_by_kind[kind].append(name)
        elif not name.startswith("__"):
            constants.append(name)
    yield _underlined(f"Reference: {module_name}", "=")
    yield f"What `import {module_name}` gives. :doc:`stability` says how long it stays.\n"
    yield f".. currentmodule:: {module_name}\n"
    for kind, names in names_by_kind.items():
        if names:
            yield _underlined(kind, "-")
            yield from (REFERENCE_KINDS[kind].format(name=name) for name in names)
    if constants:
        yield _underlined(CONSTANTS, "-")
    for name in constants:
        home, source = module._SOURCES[name]
        about = text_below(import_module(f"evalwright.{home}"), source)
        yield f".. data:: {name}\n\n   {' '.join(about.split())}\n"


def text_below(module: ModuleType, name: str) -> str:
    """The text below a constant in its file; "" for none."""
    body = ast.parse(inspect.getsource(module)).body
    for statement, below in pairwise(body):
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        if name in [target.id for target in targets if isinstance(target, ast.Name)]:
            is_text = isinstance(below, ast.Expr) and isinstance(
                below.value, ast.Constant
            )
            return str(below.value.value) if is_text else ""  # type: ignore[attr-defined]
    return ""


def kind_of_name(public: object) -> str:
    """The part of a page in which a name is; "" for what has no docstring, such as a version."""
    if isinstance(public, type):
        return "Errors" if issubclass(public, BaseException) else "Classes"
    return "Functions and decorators" if inspect.isroutine(public) else ""


def _underlined(title: str, line: str) -> str:
    return f"{title}\n{line * len(title)}\n"


def _explorer(work: Path, into: Path) -> None:
    """Run the embedded models and export the runs as a separate site."""
    names = ["factual-choice", "--model", "demo/small", "--model", "demo/large"]
    _run("evalwright", "run", *names, "--name", "site", folder=work)
    runs = sorted(
        path.name for path in (work / "runs").iterdir() if path.name.startswith("site")
    )
    _run(
        "evalwright", "export", "site", *runs, "--out", str(into.resolve()), folder=work
    )


def _run(module: str, *arguments: str, folder: Path | None = None) -> None:
    subprocess.run([sys.executable, "-m", module, *arguments], cwd=folder, check=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m scripts.build_site FOLDER")
    build(Path(sys.argv[1]))
