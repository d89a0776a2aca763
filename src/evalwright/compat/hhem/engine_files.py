"""Reads the HHEM leaderboard engine's `<company>/<model>/{summaries,judgments,stats}.jsonl`.

Older versions named fields differently; the tables below list these names. Nothing in the files is
trusted: an unexpected value raises an error that names file and line. The engine copied its
settings, keys included, into its statistics; only settings known to be harmless are read.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from evalwright.compat.recording import Clean, Recorded, field, nothing_at, number
from evalwright.extend import (
    RunError,
    closest_names,
    printable,
    read_json_lines,
    regular_file,
    reraise_as,
)

JUDGMENTS = ("judgments.jsonl", "judgements.jsonl")
SUMMARIES = "summaries.jsonl"
STATS = "stats.jsonl"
_ADVICE = "Name the engine's output folder, a company's folder in it, or one model's."

_SETTINGS = {
    "api_type",
    "enable_thinking",
    "endpoint",
    "eval_name",
    "execution_mode",
    "interaction_mode",
    "max_tokens",
    "min_throttle_time",
    "prompt",
    "reasoning_effort",
    "temperature",
    "thinking_budget",
    "thinking_tokens",
    "threads",
}
"""Settings that are imported.

Any other may be a key or say where one works, so only its name is kept.
"""

_FACTS = {
    "answer_rate",
    "avg_summary_length",
    "avg_summary_words",
    "avg_word_count",
    "company",
    "confidence_interval",
    "date_code",
    "hallucination_rate",
    "hhem_version",
    "judgment_date",
    "llm",
    "model_name",
    "summary_date",
    "timestamp",
}


def judge_name(version: str) -> str:
    """Unify judge names: statistics say "2.3-API" where judgments say "HHEM-2.3-API"."""
    name = printable(version)
    return f"HHEM-{name}" if name[:1].isdigit() else name


def _score(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _version(value: Any) -> str:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise ValueError
    return judge_name(str(value))


def _article(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int | str) or isinstance(value, bool) or value == "":
        raise ValueError
    return printable(str(value))


Uid = Annotated[str, Field(min_length=1)]
Judge = Annotated[str, BeforeValidator(_version)]
Number = Annotated[float | None, BeforeValidator(number)]
Date = Annotated[
    str, Field(pattern=r"\A(\d{4}-\d\d-\d\d|\z)"), AfterValidator(printable)
]
"""A date. The last judgment counts, so anything but a date could be mistaken for it."""
_UID_MEANING = "the id of a summary"


class Judgment(Recorded):
    """A line of judgments.jsonl.

    score: None if the judge gave none. article, date_code: in old files only.
    """

    uid: Uid = field("summary_uid", must=_UID_MEANING)
    score: Annotated[float | None, BeforeValidator(_score)] = field(
        "hhem_score", must="a number from 0 to 1", default=None, ge=0, le=1
    )
    valid: bool = field("is_valid", "valid", must="true or false")
    words: int = field(
        "word_count", "summary_words", must="a whole number of words", ge=0, lt=2**53
    )
    date: Date = field(
        "judgment_date", "timestamp", must="a date such as 2026-01-31", default=""
    )
    version: Judge = field("hhem_version", default="")
    article: Clean = field("article_id", default="")
    date_code: Clean | None = None


class Summary(Recorded):
    """A line of summaries.jsonl. text: None if it is not text."""

    uid: Uid = field("summary_uid", must=_UID_MEANING)
    article: Annotated[str, BeforeValidator(_article)] = field(
        "article_id", must="the id of an article"
    )
    text: Annotated[
        str | None,
        BeforeValidator(lambda value: value if isinstance(value, str) else None),
    ] = field("summary", default=None)
    date: Clean = field("summary_date", "eval_date", "timestamp", default="")
    date_code: Clean = ""
    model: Clean = field("model_name", "llm", default="")


class Published(Recorded):
    """A line of stats.jsonl, with rates in percent.

    left_out: names of fields that are not imported.
    """

    model: Clean = field("model_name", "llm", default="")
    date_code: Clean = ""
    summary_date: Clean = field("summary_date", "timestamp", default="")
    judgment_date: Clean = field("judgment_date", "timestamp", default="")
    version: Judge = field("hhem_version", default="")
    hallucination_rate: Number = None
    answer_rate: Number = None
    avg_word_count: Number = field(
        "avg_word_count", "avg_summary_words", "avg_summary_length", default=None
    )
    settings: Mapping[str, Any] = field("\0settings", default={})
    left_out: tuple[str, ...] = field("\0left_out", default=())


@dataclass(frozen=True, slots=True)
class Folder:
    """One model's folder. company, name: from the folder names, whatever the records say."""

    path: Path
    company: str
    name: str
    judgments: Path | None

    @property
    def tree(self) -> Path:
        """The folder that contains the company's folder."""
        return self.path.resolve().parent.parent

    @property
    def files(self) -> list[Path]:
        """The files that exist."""
        paths = [self.judgments] if self.judgments else []
        return paths + [
            path for name in (SUMMARIES, STATS) if (path := self.path / name).is_file()
        ]


def find_folders(path: Path) -> list[Folder]:
    """Find the model folders in an output tree, a company's folder or one model's, sorted by name.

    Raises RunError if there are none.
    """
    if path.is_file() and path.name in (*JUDGMENTS, SUMMARIES, STATS):
        path = path.parent
    if not path.exists():
        raise nothing_at(path, _ADVICE)
    if not path.is_dir():
        raise RunError(
            f"'{path}' is not a folder of the HHEM leaderboard engine. {_ADVICE}"
        )
    names = {*JUDGMENTS, SUMMARIES, STATS}
    with reraise_as(RunError, f"'{path}' cannot be read"):
        folders = sorted(
            {file.parent for file in path.rglob("*.jsonl") if file.name in names}
        )
    if not folders:
        files = [child.name for child in sorted(path.iterdir())][:200]
        similar_names = [
            name for name in files if closest_names(name, [*JUDGMENTS, STATS])
        ][:1]
        hint = "" if files else " It is empty."
        if similar_names:
            hint = f" The closest is '{path / similar_names[0]}'."
        raise RunError(
            f"'{path}' has no results of the HHEM leaderboard engine: no"
            f" <company>/<model>/judgments.jsonl.{hint} {_ADVICE}"
        )
    return [_folder(folder) for folder in folders]


def _folder(folder: Path) -> Folder:
    resolved = folder.resolve()
    judgments = next(
        (folder / name for name in JUDGMENTS if (folder / name).is_file()), None
    )
    return Folder(
        folder,
        printable(resolved.parent.name),
        printable(resolved.name) or "model",
        judgments,
    )


# -- lines -----------------------------------------------------------------------------


def read_judgments(folder: Folder) -> list[Judgment]:
    """Read the judgments in file order; empty if there is no file."""
    rows = read_json_lines(folder.judgments) if folder.judgments else ()
    return [Judgment.of(row, where) for where, _, row in rows]


def read_summaries(folder: Folder) -> list[Summary] | None:
    """Read the summaries in file order; None if there is no file."""
    path = folder.path / SUMMARIES
    return (
        [Summary.of(row, where) for where, _, row in read_json_lines(path)]
        if path.is_file()
        else None
    )


def read_published(folder: Folder) -> list[Published]:
    """Read what the engine published of the model, one entry for each pair of dates."""
    path = folder.path / STATS
    return (
        [_published(row, where) for where, _, row in read_json_lines(path)]
        if path.is_file()
        else []
    )


def _published(row: Mapping[str, Any], where: str) -> Published:
    settings = {key: row[key] for key in sorted(_SETTINGS & row.keys())}
    plain_settings = {
        key: value
        for key, value in settings.items()
        if isinstance(value, str | int | float | None)
    }
    left_out = tuple(sorted(printable(key) for key in row.keys() - _SETTINGS - _FACTS))
    return Published.of(
        {**row, "\0settings": plain_settings, "\0left_out": left_out}, where
    )


def read_articles(path: Path) -> dict[str, dict[str, str]]:
    """Read category, text_type and dataset by `article_id` from the CSV; texts are dropped."""
    # an annual report has more than the 128 KiB that are allowed otherwise
    csv.field_size_limit(1 << 27)
    broken = reraise_as(
        RunError, f"{path} is not a CSV in UTF-8", (UnicodeDecodeError, csv.Error)
    )
    unread = reraise_as(RunError, f"{path} cannot be read")
    with (
        unread,
        broken,
        regular_file(path).open(encoding="utf-8-sig", newline="") as file,
    ):
        rows = csv.DictReader(file)
        if "article_id" not in (rows.fieldnames or ()):
            raise RunError(
                f"{path} has no column 'article_id', but"
                f" {_quote_names(rows.fieldnames or ())}. --articles takes the data set's"
                " CSV: article_id, text, and category, text_type or dataset."
            )
        slices_by_article: dict[str, dict[str, str]] = {}
        for row in rows:
            article = printable((row["article_id"] or "").strip())
            if not article or article in slices_by_article:
                problem = (
                    f"the article '{article}' a second time"
                    if article
                    else "no 'article_id'"
                )
                raise RunError(f"{path}, line {rows.line_num} has {problem}.")
            slices_by_article[article] = {
                key: printable(row[key]) for key in SLICES if row.get(key)
            }
        return slices_by_article


SLICES = ("category", "text_type", "dataset")


def _quote_names(names: Sequence[str]) -> str:
    return (
        ", ".join(f"'{printable(name or '')}'" for name in list(names)[:8])
        or "no columns at all"
    )
