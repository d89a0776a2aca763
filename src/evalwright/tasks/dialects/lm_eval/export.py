"""A finished run in lm-evaluation-harness's own files: `results_<time>.json` and `samples_<task>_<time>.jsonl`.

What its tools and viewers of such files read is written; what only its own process knows (its git commit, its batch sizes) is
not. Requests are made again from the tasks, so these must be loaded as they were for the run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from evalwright.core.errors import RunError
from evalwright.core.requests import Prompt, prompt_payload
from evalwright.core.samples import Answer, SampleRecord
from evalwright.core.tasks import Task
from evalwright.tasks.dialects.lm_eval.asking import answers_of
from evalwright.tasks.dialects.lm_eval.compiling import Work
from evalwright.tasks.dialects.lm_eval.filters import Pipeline
from evalwright.tasks.dialects.lm_eval.options import PREFIX
from evalwright.tasks.dialects.lm_eval.results import all_results, groups_of


class _Run(Protocol):
    """What is read of a run (`runs.reader.Run`)."""

    @property
    def data(self) -> Mapping[str, Any]: ...

    def samples(self) -> Iterable[SampleRecord]: ...


def export(run: _Run, tasks: Sequence[Task], folder: Path) -> list[Path]:
    """Write a run's files under `folder/<model>`; returns their paths, the results first.

    tasks: those of the run, loaded with the same settings. Raises RunError where one is not the run's.
    """
    works = {task.name: _work_of(task, run) for task in tasks}
    time = str(run.data["started"]).replace(":", "-")
    model = str(run.data["model"]["name"])
    place = folder / "".join(char if char.isalnum() or char in "._-" else "_" for char in model)
    place.mkdir(parents=True, exist_ok=True)
    answers: dict[str, dict[int, Answer]] = {name: {} for name in works}
    for record in run.samples():
        if record.task in answers and record.answer is not None and not record.score_failures:
            answers[record.task][record.index] = record.answer
    paths: list[Path] = []
    hashes: dict[str, str] = {}
    for name, work in works.items():
        own = name.removeprefix(PREFIX)
        path = place / f"samples_{own}_{time}.jsonl"
        digest = hashlib.sha256()
        with path.open("w", encoding="utf-8", errors="backslashreplace") as out:
            for sample in samples_of(work, answers[name]):
                digest.update((sample["doc_hash"] + sample["prompt_hash"] + sample["target_hash"]).encode())
                out.write(json.dumps(sample, ensure_ascii=False, default=str) + "\n")
        hashes[own] = digest.hexdigest()
        paths.append(path)
    results = place / f"results_{time}.json"
    results.write_text(
        json.dumps({**results_of(run), "task_hashes": hashes}, indent=2, ensure_ascii=False, default=str),
        encoding="utf-8",
    )
    return [results, *paths]


def _work_of(task: Task, run: _Run) -> Work:
    recorded = {one["name"]: one for one in run.data["tasks"]}
    known = recorded.get(task.name)
    if known is None or known["content_hash"] != task.samples.content_hash:
        raise RunError(
            f"The task '{task.name}' is not the one of this run: load it with the run's settings and data."
        )
    function: Any = task.scorers[0].function
    work: Work = function.func.__self__
    return work


def results_of(run: _Run) -> dict[str, Any]:
    """The results file of a run."""
    results = all_results(run)
    groups = groups_of(run)
    definitions = {
        task["definition"]["task"]: (task, task["definition"])
        for task in run.data["tasks"]
        if task["definition"].get("dialect") == "lm-eval"
    }
    averaged = {name: results[name] for name, group in groups.items() if group.averages}
    configuration = run.data["configuration"]
    model = run.data["model"]["name"]
    return {
        "results": results,
        **({"groups": averaged} if averaged else {}),
        "group_subtasks": {name: list(group.children) for name, group in groups.items()},
        "configs": {name: definition["config"] for name, (_, definition) in definitions.items()},
        "versions": {name: task["version"] for name, (task, _) in definitions.items()}
        | {name: group.version for name, group in groups.items()},
        "n-shot": {name: definition["num_fewshot"] for name, (_, definition) in definitions.items()},
        "higher_is_better": {name: one["higher_is_better"] for name, (_, one) in definitions.items()},
        "n-samples": {
            name: {"original": task["n_samples"], "effective": results[name]["sample_len"]}
            for name, (task, _) in definitions.items()
        },
        "config": {"model": model, "model_args": "", "limit": configuration.get("limit")},
        "date": run.data["started"],
        "model_name": model,
        "evalwright": run.data["evalwright"],
    }


def samples_of(work: Work, answers: Mapping[int, Answer]) -> Iterator[dict[str, Any]]:
    """The lines of a task's samples file: one for each pipeline and row that was scored."""
    opened = work.opened
    for pipeline in work.definition.pipelines:
        for index in sorted(answers):
            yield _line(work, pipeline, index, opened.rows[index], answers[index])


def _line(work: Work, pipeline: Pipeline, index: int, doc: Any, answer: Answer) -> dict[str, Any]:
    opened, kind = work.opened, work.definition.config.output_type
    asked = opened.questions(index, doc)
    arguments = {
        f"gen_args_{place}": {"arg_0": _text(one.context), **({} if one.rolling else {"arg_1": one.rest})}
        for place, one in enumerate(asked)
    }
    target = opened.fields.target(doc)
    worth = work.scores(pipeline, opened.rows[index], answer)
    return {
        "doc_id": index,
        "doc": doc,
        "target": str(target),
        "arguments": arguments,
        "resps": _listed(answers_of(answer, kind, work.repeats, work.options.published)),
        "filtered_resps": _listed(work.filtered(pipeline, doc, answer)),
        "filter": pipeline.name,
        "metrics": list(worth),
        "doc_hash": _hash(json.dumps(doc, indent=2, default=str, ensure_ascii=False)),
        "prompt_hash": _hash(_text(asked[0].context)),
        "target_hash": _hash(str(target)),
        **worth,
    }


def _text(prompt: Prompt) -> str:
    """A prompt as text; messages, which only the model's own template renders, as JSON."""
    return prompt if isinstance(prompt, str) else json.dumps(prompt_payload(prompt), ensure_ascii=False)


def _listed(value: Any) -> Any:
    """Lists of texts, as viewers of tables want them: every number as text."""
    return [_listed(one) for one in value] if isinstance(value, list | tuple) else str(value)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
