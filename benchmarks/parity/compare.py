"""A random sample of shipped tasks, run in the released lm_eval and in Evalwright on the same
synthetic rows and the same model.

    python -m benchmarks parity_tasks [--sample 300] [--seed 0] [--only TASK ...]

Requests are compared byte for byte, filtered answers and worth row by row, results and standard
errors to 1e-9. Tasks for which no rows can be made (or whose Python lacks a library here) are
counted apart, with the reason.
"""

from __future__ import annotations

import json
import logging
import math
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from measuring import Table, option_parser
from peers import LM_EVAL

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evalwright import evaluate
from evalwright.compat.lm_eval.tasks import compiling
from evalwright.compat.lm_eval.tasks.compiling import Work, compile_definition
from evalwright.compat.lm_eval.tasks.config import Definition, read
from evalwright.compat.lm_eval.tasks.loading import Library
from evalwright.compat.lm_eval.tasks.options import Options
from evalwright.compat.lm_eval.tasks.results import task_results
from evalwright.compat.lm_eval.tasks.row_requests import prompt_as_text
from evalwright.compat.lm_eval.tasks.splits import Splits
from evalwright.compat.lm_eval.tasks.task_yaml import unavailable_in
from evalwright.core.errors import EvalwrightError
from evalwright.core.requests import (
    Generate,
    LogLikelihood,
    Request,
    RollingLogLikelihood,
)
from evalwright.core.responses import Response
from evalwright.core.tasks import Task
from evalwright.models.scripted import ScriptedModel
from parity import by_hand, hash_model, synthetic

HERE = Path(__file__).resolve().parent
ROWS = 6
Rows = dict[str, list[dict[str, Any]]]


def answer(request: Request) -> Response:
    """The hash model's answer to a request of ours."""
    if isinstance(request, LogLikelihood):
        value, greedy = hash_model.likelihood(
            prompt_as_text(request.context, hash_model.template), request.continuation
        )
        return Response(log_likelihood=value, is_greedy=greedy, tokens_scored=1)
    if isinstance(request, RollingLogLikelihood):
        return Response(
            log_likelihood=hash_model.rolling(request.text), tokens_scored=1
        )
    assert isinstance(request, Generate)
    return Response(
        text=hash_model.generated(
            prompt_as_text(request.prompt, hash_model.template), list(request.stop)
        )
    )


def work_of(task: Task) -> Work:
    """The inside of a compiled task."""
    function: Any = task.scorers[0].function
    work: Work = function.func.__self__
    return work


def splits_of(definition: Definition) -> list[str]:
    """The names of the splits that a task reads."""
    config = definition.config
    named = (
        config.training_split,
        config.validation_split,
        config.test_split,
        definition.shots.split,
    )
    return [name for name in dict.fromkeys(named) if name]


def rows_of(name: str, definition: Definition, columns: Mapping[str, Any]) -> Rows:
    """Synthetic rows for every split; the same name gives the same rows."""
    make_row = by_hand.ROWS.get(name)
    if make_row is not None:
        return {
            split: [
                make_row(random.Random(f"{name}/{split}/{number}"))
                for number in range(ROWS)
            ]
            for split in splits_of(definition)
        }
    return {
        split: [
            synthetic.row(
                dict(columns), random.Random(f"{name}/{split}/{number}"), number
            )
            for number in range(ROWS)
        ]
        for split in splits_of(definition)
    }


def find_rows(name: str, definition: Definition, options: Options) -> Rows | None:
    """Synthesise rows that a task can ask and score; None if that fails."""
    import datasets

    def attempt(columns: dict[str, Any]) -> None:
        tables = {
            split: datasets.Dataset.from_list(rows)
            for split, rows in rows_of(name, definition, columns).items()
        }

        class Given(Splits):
            def _open(self) -> Any:
                return tables

        with mock.patch.object(compiling, "Splits", Given):
            work = work_of(compile_definition(definition, options))
            for index in range(len(work.samples)):
                try_row(work, index)

    texts = [
        text
        for function in (definition.config.process_docs, definition.shots.process_docs)
        for text in synthetic.constants(function)
    ]
    parts = name.split("_")
    texts += ["_".join(parts[start:]) for start in range(1, len(parts))] + [
        str(definition.config.dataset_name)
    ]
    columns = synthetic.settle(
        synthetic.columns_of(definition.config), attempt, list(dict.fromkeys(texts))
    )
    return None if columns is None else rows_of(name, definition, columns)


def try_row(work: Work, index: int) -> None:
    """Ask and score one row of a task, without the engine."""
    from evalwright.core.samples import Answer

    doc = work.opened.rows[index]
    questions = work.opened.questions(index, doc)
    responses = [
        answer(question.request(0))
        for question in questions
        for _ in range(work.repeats)
    ]
    for pipeline in work.definition.pipelines:
        row = work.opened.rows[index]
        work.opened.scoring(
            row,
            pipeline(
                work.responses_by_request(Answer(responses=tuple(responses))), row
            ),
        )


def prepare_jobs(
    library: Library, names: list[str], folder: Path, limit: int, number: int
) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Write task files and rows for as many of the names as wanted; returns jobs, and why others
    were left out.
    """
    jobs: list[dict[str, Any]] = []
    left: Counter[str] = Counter()
    for name in names:
        if len(jobs) == limit:
            break
        settings = library.collect(name).tasks[name]
        try:
            resolved = library.functions.resolve(settings, name)
            definition = read(resolved)
        except EvalwrightError as error:
            left[f"not compiled ({type(error).__name__})"] += 1
            continue
        if unavailable_in(resolved):
            left["a library of its Python is not installed here"] += 1
            continue
        config = definition.config
        if config.custom_dataset or config.doc_to_image or config.doc_to_audio:
            left["its Python makes the data, or it has images or sound"] += 1
            continue
        job = variant(name, number)
        options = Options(
            roots=library.roots,
            trust=library.roots,
            scoring="published",
            num_fewshot=job["shots"],
        )
        rows = find_rows(name, definition, options)
        if rows is None:
            left["no synthetic rows found that it can be asked"] += 1
            continue
        write(folder, job["name"], Path(library.index[name].path), rows, settings)
        jobs.append(job)
    return jobs, left


def variant(name: str, number: int) -> dict[str, Any]:
    """How a task is run: shots, chat, instruction, decided by its name and a number."""
    chance = random.Random(f"{name}{number or ''}")
    chat = chance.random() < 0.4
    return {
        "key": name,
        "name": f"syn__{name}",
        "shots": chance.choice([None, 0, 2]),
        "chat": chat,
        "multiturn": chance.random() < 0.5,
        "system": "Be brief." if chat and chance.random() < 0.5 else None,
    }


def write(
    folder: Path, name: str, shipped: Path, rows: Rows, settings: Mapping[str, Any]
) -> None:
    """A task file that points the shipped one at rows beside it."""
    import yaml

    files = {}
    for split, content in rows.items():
        path = folder / "rows" / f"{name}.{split}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "".join(json.dumps(row) + "\n" for row in content), encoding="utf-8"
        )
        files[split] = str(path)
    data = {
        "dataset_path": "json",
        "dataset_name": None,
        "dataset_kwargs": {"data_files": files},
    }
    text = yaml.safe_dump({"include": str(shipped), "task": name, **data})
    (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def ours(
    folder: Path, roots: tuple[Path, ...], job: Mapping[str, Any]
) -> dict[str, Any]:
    """One run here, in the shape of theirs."""
    options = Options(
        # so that their modules have one name, and register what they bring once
        roots=(*roots, folder),
        trust=(*roots, folder),
        scoring="published",
        num_fewshot=job["shots"],
        chat=job["chat"],
        multiturn=job["multiturn"],
        system=job["system"] or "",
        bootstrap=100,
    )
    try:
        tasks = Library(options).load(job["name"])
        model = ScriptedModel(answer, name="hash")
        (run,) = evaluate(
            tasks,
            model,
            out=str(folder / "runs"),
            replace=True,
            home=str(folder / "home"),
        )
    except EvalwrightError as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    if run.n_missing:
        failed = next(
            record
            for record in run.samples()
            if record.failure or record.score_failures
        )
        return {
            "error": f"failed: {failed.failure or next(iter(failed.score_failures.values()))}"[
                :300
            ]
        }
    answers = {record.index: record.answer for record in run.samples()}
    work = work_of(tasks[0])
    samples = [
        sample_of(work, index, pipeline, answers[index])
        for pipeline in work.definition.pipelines
        for index in range(len(work.samples))
    ]
    return {
        "results": task_results(run.data["tasks"]),
        "samples": {job["name"]: samples},
    }


def sample_of(work: Work, index: int, pipeline: Any, responses: Any) -> dict[str, Any]:
    """One row's requests, filtered answers and metric values."""
    doc = work.opened.rows[index]
    arguments = [
        [prompt_as_text(question.context, hash_model.template)]
        + ([] if question.rolling else [question.second_argument])
        for question in work.opened.questions(index, doc)
    ]
    filtered = pipeline(work.responses_by_request(responses), doc)
    worth = work.opened.scoring(work.opened.rows[index], filtered)
    return {
        "doc_id": index,
        "arguments": arguments,
        "filtered_resps": filtered,
        "filter": pipeline.name,
        "metrics": list(worth),
        "worth": worth,
    }


def differences(ours: Any, theirs: Any, where: str = "") -> Iterator[str]:
    """Yield where two runs differ."""
    if hasattr(ours, "tolist"):
        ours = ours.tolist()
    if isinstance(theirs, dict) and isinstance(ours, Mapping):
        for key in {**theirs, **ours}:
            if key not in ours or key not in theirs:
                yield f"{where}/{key}: only {'theirs' if key in theirs else 'ours'}"
            else:
                yield from differences(ours[key], theirs[key], f"{where}/{key}")
    elif isinstance(theirs, list) and isinstance(ours, list | tuple):
        if len(theirs) != len(ours):
            yield f"{where}: {len(ours)} here, {len(theirs)} there"
        else:
            for place, (our_element, their_element) in enumerate(
                zip(ours, theirs, strict=True)
            ):
                yield from differences(our_element, their_element, f"{where}[{place}]")
    elif isinstance(theirs, int | float) and isinstance(ours, int | float):
        both_nan = math.isnan(theirs) and math.isnan(ours)
        if not both_nan and not math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9):
            yield f"{where}: {ours!r} here, {theirs!r} there"
    elif ours != theirs and str(ours) != str(theirs):
        yield f"{where}: {str(ours)[:120]!r} here, {str(theirs)[:120]!r} there"


def main(words: Sequence[str] | None = None) -> int:
    """Run the comparison, print what differs; exit code 1 where anything does."""
    parser = option_parser(__doc__)
    parser.add_argument(
        "--tasks",
        type=Path,
        help="the released package's tasks folder; installed by default",
    )
    parser.add_argument(
        "--peer",
        type=Path,
        help="an interpreter that has the released package",
    )
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--variant",
        type=int,
        default=0,
        help="another choice of shots and chat for every task",
    )
    parser.add_argument("--only", nargs="*", help="these tasks instead of a sample")
    parser.add_argument("--work", type=Path, default=Path(".parity"))
    arguments = parser.parse_args(words)
    if not arguments.tasks or not arguments.peer:
        LM_EVAL.ensure()
        arguments.tasks = arguments.tasks or LM_EVAL.packages / "lm_eval" / "tasks"
        arguments.peer = arguments.peer or LM_EVAL.python
    logging.getLogger("evalwright.lm_eval").setLevel(logging.ERROR)
    folder: Path = arguments.work.resolve()
    for old in folder.glob("syn__*.yaml"):
        old.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["EVALWRIGHT_HOME"] = str(folder / "home")
    tasks: Path = arguments.tasks.resolve()
    library = Library(Options(roots=(tasks,), trust=(tasks,)))
    names = arguments.only or [
        name for name, entry in library.index.items() if entry.kind == "task"
    ]
    if not arguments.only:
        random.Random(arguments.seed).shuffle(names)
    jobs, left = prepare_jobs(
        library, names, folder, arguments.sample, arguments.variant
    )
    (folder / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
    theirs_path = folder / "theirs.jsonl"
    subprocess.run(
        [
            str(arguments.peer),
            str(HERE / "theirs.py"),
            str(folder),
            str(folder / "jobs.json"),
            str(theirs_path),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with theirs_path.open(encoding="utf-8") as file:
        theirs = {line["key"]: line for line in map(json.loads, file)}
    return report(jobs, left, theirs, folder, library.roots)


def report(
    jobs: list[dict[str, Any]],
    left: Counter[str],
    theirs: Mapping[str, Any],
    folder: Path,
    roots: tuple[Path, ...],
) -> int:
    """Compare all jobs and print the outcome; the exit code."""
    verdicts: Counter[str] = Counter()
    for job in jobs:
        expected = dict(theirs[job["key"]])
        expected.pop("key")
        actual = ours(folder, roots, job)
        if "error" in expected or "error" in actual:
            verdict = (
                "both refuse"
                if "error" in expected and "error" in actual
                else "only one refuses"
            )
            notes = [
                f"here: {actual.get('error', 'runs')}",
                f"there: {expected.get('error', 'runs')}",
            ]
        else:
            notes = list(differences(actual, expected))
            verdict = "different" if notes else "equal"
        verdicts[verdict] += 1
        if verdict != "equal":
            print(f"{verdict}: {job['key']} (shots {job['shots']}, chat {job['chat']})")
            for note in notes[:4]:
                print(f"    {note}")
    table = Table(["outcome", "tasks"], f"{len(jobs)} tasks compared")
    for name, count in verdicts.most_common():
        table.add(name, count)
    for reason, count in left.most_common():
        print(f"{count} passed over: {reason}")
    return int(verdicts["different"] + verdicts["only one refuses"] > 0)


if __name__ == "__main__":
    sys.exit(main())
