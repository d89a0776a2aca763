"""Writes the benchmark's questions as task files, to compare new runs with imported ones.

Tasks, ids, questions and references have the same names as in imported runs, so samples are paired;
the prompt is ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from evalwright.compat.open_factual_bench.recorded_rows import (
    STRESS_TYPE,
    question_metadata,
)
from evalwright.compat.open_factual_bench.run_files import Question
from evalwright.compat.open_factual_bench.scoring import is_graded
from evalwright.extend import write_file

FOLDER = "open-factual-bench"

_FILE = """\
# Questions of open-factual-bench. Written by `evalwright import open-factual-bench --tasks`.
task: {task}
version: "1"
description: {about}

dataset: {data}

sample:
  id: "{{{{ id }}}}"
  input: "{{{{ question }}}}"
  target: "{{{{ reference }}}}"
  metadata:
{metadata}

prompt:
  user: |-
    Answer the question in a short phrase, without explaining it.

    Question: {{{{ input }}}}
    Answer:

answer:
  mode: generate
  text: {{max_tokens: 64, stop: ["\\n\\n", "\\nQuestion:"]}}
  chat: {{max_tokens: 2048}}

scorers: [{scorer}]
metrics: [{metric}]
slices: [domain]

metadata:
  language: en
  tags: [factuality]
"""
_KEYS = ("domain", "type", "source", "created_at", "premise")


def write_tasks(
    questions: Mapping[str, Question], folder: Path, names: tuple[str, str]
) -> None:
    """Write task files and data for the short answers and for the stress questions.

    Questions whose reference is a description are left out. names: of the two tasks. Raises
    RunError.
    """
    short = [
        question
        for question in questions.values()
        if question.type != STRESS_TYPE and is_graded(question.reference)
    ]
    stress = [
        question for question in questions.values() if question.type == STRESS_TYPE
    ]
    kinds = (
        (short, "short-answer", "accuracy", "Facts from memory, in a short phrase."),
        (
            stress,
            "stress",
            "handled",
            "Questions with a false premise; the right answer says so.",
        ),
    )
    for name, (rows, scorer, metric, description) in zip(names, kinds, strict=True):
        if not rows:
            continue
        keys = [key for key in _KEYS if key != "premise" or scorer == "stress"]
        metadata = "\n".join(
            f'    {key}: "{{{{ {key} | default(none) }}}}"' for key in keys
        )
        facts = {
            "task": name,
            "data": f"{name}.jsonl",
            "scorer": scorer,
            "metric": metric,
        }
        lines = ""
        for question in rows:
            row = {
                "id": question.id,
                "question": question.question,
                "reference": question.reference,
                **question_metadata(question),
            }
            lines += json.dumps(row, ensure_ascii=False) + "\n"
        write_file(folder / f"{name}.jsonl", lines)
        write_file(
            folder / f"{name}.yaml",
            _FILE.format(about=description, metadata=metadata, **facts),
        )
