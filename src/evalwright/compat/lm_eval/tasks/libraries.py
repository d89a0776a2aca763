"""Which of our extras brings a library that the Python beside shipped tasks imports."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

# By extra: what its tasks import.
EXTRAS = {
    "lm-eval": (
        "antlr4", "datasets", "evaluate", "immutabledict", "langdetect", "lm_eval", "math_verify", "nltk", "pandas", "pkg_resources",
        "regex", "rouge_score", "sacrebleu", "sklearn", "sympy", "transformers", "word2number",
    ),
    "lm-eval-acpbench": ("kstar_planner", "lark", "pddl", "tarski"),
    "lm-eval-bert-score": ("bert_score",),
    "lm-eval-discrim-eval": ("statsmodels",),
    "lm-eval-japanese-leaderboard": ("emoji", "fugashi", "neologdn"),
    "lm-eval-jsonschema": ("jsonschema",),
    "lm-eval-libra": ("pymorphy3",),
    "lm-eval-longbench": ("fuzzywuzzy", "jieba", "rouge"),
    "lm-eval-multilingual": ("absl", "iso639", "pycountry", "spacy"),
    "lm-eval-pisa": ("openai",),
    "lm-eval-ruler": ("requests", "wonderwords"),
    "lm-eval-unitxt": ("unitxt",),
    "hf": ("torch",),
}  # fmt: skip
_ELSEWHERE = {"tinyBenchmarks": "git+https://github.com/felipemaiapolo/tinyBenchmarks"}
"""Not on PyPI, so in no extra."""
_CAUGHT = frozenset(("bert_score", "nltk", "pymorphy3", "rouge_score", "sacrebleu"))
"""Modules of tasks catch that these are missing, and then give zeros, or fail when an answer is scored."""
_EXTRA_OF = {library: extra for extra, libraries in EXTRAS.items() for library in libraries}
_SPACY_MODEL = re.compile(r"Can't find model '([\w-]+)'")
_PIP = re.compile(r"pip install ['\"]?(\w+)")
_THEIR_EXTRA = re.compile(r"""lm[-_]eval\[["']?([\w-]+)""")


def install_command(library: str) -> str:
    """The command that installs an importable library."""
    top = library.partition(".")[0]
    extra = _EXTRA_OF.get(top)
    return f"pip install {quote(f'evalwright[{extra}]' if extra else _ELSEWHERE.get(top, top))}"


def advice(error: BaseException) -> str:
    """What to install where an error, or one that it was raised for, says that a library is missing or of another release; or nothing."""
    chain: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and one not in chain:
        chain.append(one)
        one = one.__cause__ or one.__context__
    for one in chain:
        if isinstance(one, ModuleNotFoundError) and one.name:
            return f" Install it with: {install_command(one.name)}"
    if model := _SPACY_MODEL.search(str(error)):
        return f" Install it with: python -m spacy download {model[1]}"
    for named in _THEIR_EXTRA.findall(" ".join(map(str, chain))):
        ours = f"lm-eval-{named.replace('_', '-')}"
        return (
            f" Install what it needs with: pip install 'evalwright[{ours if ours in EXTRAS else 'lm-eval'}]'"
        )
    for name in _PIP.findall(str(error)):
        if name in _EXTRA_OF:
            return f" Install it with: {install_command(name)}"
    return ""


def missing_without_error(path: Path) -> str | None:
    """The library that a module imports, goes on without, and cannot score without; None where there is none."""
    return next((name for name in imported_by(path) if name in _CAUGHT and not _is_here(name)), None)


def imported_by(path: Path) -> Iterator[str]:
    """The top-level names of the modules that a file imports anywhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its escape sequences: Python says it where the file is imported
        tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module).partition(".")[0]


def _is_here(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # made in this process
        return name in sys.modules
