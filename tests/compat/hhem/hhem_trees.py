"""Output trees as the HHEM leaderboard engine writes them, and its arithmetic in plain loops, to
test the import against.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalwright.compat.hhem.importing import import_hhem
from evalwright.runs.reader import Run

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "hhem"
"""Recorded runs of the public engine, where this checkout stands beside them."""

PLACEHOLDERS = (
    "MODEL FAILED TO RETURN ANY OUTPUT",
    "DID NOT RECIEIVE A STRING TYPE FROM OUTPUT",
    "FOUND <think> WITH NO CLOSING </think>",
    "EMPTY SUMMARY GIVEN BY MODEL",
    "THIS SUMMARY IS EMPTY, THIS IS THE DEFAULT VALUE A SUMMARY VARIABLE GETS. A REAL SUMMARY WAS NOT ASSIGNED TO THIS VARIABLE.",
    "I am unable to summarize this passage.",
    "THREAD ERROR",
)

REFUSAL = "I am unable to summarize this passage."

LONG = "The article tells of a long walk by the sea, and number {} of it."


def text_of(place: int) -> str:
    """A summary of fifteen words that no other article has."""
    return LONG.format(place)


@dataclass(frozen=True)
class Line:
    """One article's row. uid: "" makes one of its own; two rows may share one."""

    article: int
    text: str
    score: float | None
    uid: str = ""


def lines_of(scores: Sequence[float | None]) -> list[Line]:
    """A row for each score, with good summaries."""
    return [Line(place, text_of(place), score) for place, score in enumerate(scores, 1)]


@dataclass(frozen=True)
class Model:
    """How a model's folder is written. more: further fields of its statistics."""

    name: str = "acme/one"
    date_code: str = ""
    summary_date: str = "2026-01-01"
    judgment_date: str = "2026-01-02"
    version: str = "2.3-API"
    summaries: bool = True
    stats: bool = True
    more: Mapping[str, Any] | None = None

    def but(self, **changes: Any) -> Model:
        """The same with changes."""
        return replace(self, **changes)

    def write(self, tree: Path, lines: Sequence[Line], *, append: bool = False) -> Path:
        """Write its folder, or append to what is there, as the engine does when it is asked
        twice.
        """
        folder = tree / self.name
        folder.mkdir(parents=True, exist_ok=True)
        uids = [
            line.uid or f"{self.name}{self.date_code}{self.summary_date}-{line.article}"
            for line in lines
        ]
        judgments = [
            {
                "eval_name": "live",
                "judgment_date": self.judgment_date,
                "summary_uid": uid,
                "hhem_version": f"HHEM-{self.version}",
                "hhem_score": one.score,
                "is_valid": one.text.strip() not in PLACEHOLDERS
                and len(one.text.split()) > 5,
                "word_count": len(one.text.split()),
            }
            for one, uid in zip(lines, uids, strict=True)
        ]
        summaries = [
            {
                "article_id": one.article,
                "summary_uid": uid,
                "summary": one.text,
                "company": "acme",
                "model_name": self.name.split("/")[-1].removesuffix(
                    f"-{self.date_code}"
                ),
                "date_code": self.date_code,
                "summary_date": self.summary_date,
            }
            for one, uid in zip(lines, uids, strict=True)
        ]
        write(folder / "judgments.jsonl", judgments, append)
        if self.summaries:
            write(folder / "summaries.jsonl", summaries, append)
        if self.stats:
            rates = engine(
                judgments,
                summaries,
                self.date_code,
                self.summary_date,
                self.judgment_date,
            )
            row = {
                "eval_name": "live",
                "summary_date": self.summary_date,
                "judgment_date": self.judgment_date,
                "model_name": summaries[0]["model_name"],
                "date_code": self.date_code,
                "hhem_version": self.version,
                **dict(
                    zip(
                        ("hallucination_rate", "answer_rate", "avg_word_count"),
                        rates or (-100.0,) * 3,
                        strict=True,
                    )
                ),
                "prompt": "Summarise: {article}",
                **(self.more or {}),
            }
            write(folder / "stats.jsonl", [row], append)
        return folder


def write(path: Path, rows: Iterable[Mapping[str, Any]], append: bool = False) -> None:
    """Write JSON lines."""
    with path.open("a" if append else "w", encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps(row) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def engine(
    judgments: Sequence[Mapping[str, Any]],
    summaries: Sequence[Mapping[str, Any]],
    date_code: str,
    summary_date: str,
    judgment_date: str,
) -> tuple[float, float, float] | None:
    """Hallucination rate, answer rate and words as the engine has them: every pair of rows that
    share a uid counts.
    """
    joined = [
        judgment
        for judgment in judgments
        for summary in summaries
        if judgment["summary_uid"] == summary["summary_uid"]
        and summary["date_code"] == date_code
        and summary["summary_date"] == summary_date
        and judgment["judgment_date"] == judgment_date
    ]
    valid = [one for one in joined if one["is_valid"]]
    if not valid:
        return None
    consistent = sum(
        one["hhem_score"] is not None and one["hhem_score"] >= 0.5 for one in valid
    )
    return (
        round((1 - consistent / len(valid)) * 100, 1),
        round(len(valid) / len(joined) * 100, 1),
        round(sum(one["word_count"] for one in valid) / len(valid), 1),
    )


def shown(run: Run) -> dict[str, float | None]:
    """A run's numbers to one decimal, in points where they are rates."""
    (task,) = run.tasks
    out: dict[str, float | None] = {}
    for metric in task.metrics:
        value = metric.estimate.value
        scale = 1.0 if metric.label == "mean-words" else 100.0
        out[metric.label] = None if value != value else round(value * scale, 1)
    return out


def one(path: Path, out: Path, **options: Any) -> Run:
    """The only run of an import."""
    (run,) = import_hhem(path, out, **options)[0]
    return run


def about(run: Run) -> dict[str, Any]:
    """What a run says of where it comes from."""
    found: dict[str, Any] = run.data["configuration"]["imported"]
    return found


def three(run: Run) -> tuple[float | None, ...]:
    """The engine's three numbers."""
    found = shown(run)
    return found["hallucination-rate"], found["answer-rate"], found["mean-words"]


def mixed() -> list[Line]:
    """Seven articles: three good, one hallucinated, one refused, one failed, one too short."""
    texts = [
        text_of(1),
        text_of(2),
        text_of(3),
        text_of(4),
        REFUSAL,
        PLACEHOLDERS[0],
        "Too short.",
    ]
    scores = [0.9, 0.5, 0.8, 0.4999, 0.9, 0.1, 0.9]
    return [
        Line(place, text, score)
        for place, (text, score) in enumerate(zip(texts, scores, strict=True), 1)
    ]
