"""What the methods section of a paper says about runs, as plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from evalwright.analysis.comparison import Comparison
from evalwright.analysis.several import SeveralComparison
from evalwright.analysis.words import counted, listed
from evalwright.reports import numbers
from evalwright.reports.hardware_view import hardware_facts
from evalwright.reports.provenance import (
    as_section,
    data_hash,
    few_shot_text,
    generation_text,
    import_section,
    imported_generation,
    program_text,
    prompt_hash,
    python_version,
    scorers_text,
)
from evalwright.reports.text import inert
from evalwright.runs.reader import Run

LINE_CHARS = 96
HASH_CHARS = 12
"""Characters of a hash in a sentence: enough to tell versions apart."""


def methods_text(
    runs: Sequence[Run], comparison: Comparison | SeveralComparison | None
) -> str:
    """Write the paragraphs: models, tasks, prompts, generation, scoring, statistics, software.

    Args:
        runs: the runs that the paper reports.
        comparison: of these runs, where there are several that can be compared.
    """
    paragraphs = [
        ("Models", " ".join(_model_sentence(run) for run in runs)),
        ("Tasks", _tasks_text(runs)),
        ("Prompts", _prompts_text(runs)),
        ("Generation", _generation_text(runs)),
        ("Scoring", _scoring_text(runs)),
        ("Statistics", _statistics_text(runs, comparison)),
        ("Software", _software_text(runs)),
    ]
    return "\n\n".join(
        textwrap.fill(
            f"{title}. {text}",
            LINE_CHARS,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for title, text in paragraphs
        if text
    )


def _model_sentence(run: Run) -> str:
    phrases = [f"run on {inert(str(run.data['started']))[:10]}"]
    hardware = as_section(run.data.get("hardware"))
    machine = dict(hardware_facts(run.data))
    if as_section(hardware.get("model")).get("local") is True:
        phrases.append(f"locally on {machine.get('Machine', 'a machine not recorded')}")
        if machine.get("Ran on"):
            phrases.append(machine["Ran on"])
    elif "/" in run.model:
        phrases.append(f"provider {inert(run.model).partition('/')[0]}")
    model = as_section(run.data.get("model"))
    if model.get("fingerprint"):
        phrases.append(f"fingerprint {inert(str(model['fingerprint']))[:HASH_CHARS]}")
    if run.prompt:
        prompt_name = inert(run.prompt.get("name", ""))
        short_hash = inert(run.prompt.get("hash", ""))[:HASH_CHARS]
        phrases.append(f"prompt {prompt_name}, hash {short_hash}")
    return f"{inert(run.label)} ({', '.join(phrases)})."


def _tasks_text(runs: Sequence[Run]) -> str:
    sentences = []
    for task, records in _records_by_task(runs).items():
        versions = listed_once(str(record.get("version", "")) for record in records)
        hashes = listed_once(data_hash(record)[:HASH_CHARS] for record in records)
        counts = listed_once(
            counted(int(record.get("n_samples", 0)), "item") for record in records
        )
        phrases = [
            *([f"version {versions}"] if versions else []),
            counts,
            *([f"data hash {hashes}"] if hashes else []),
        ]
        sentences.append(f"{task} ({', '.join(phrases)})")
    limits = listed_once(
        str(run.data["configuration"]["limit"])
        for run in runs
        if run.data["configuration"].get("limit") is not None
    )
    note = f" At most {limits} items of each task were used." if limits else ""
    return f"{listed(sentences)}.{note}"


def _records_by_task(runs: Sequence[Run]) -> dict[str, list[Mapping[str, Any]]]:
    records: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        for record in run.data["tasks"]:
            records.setdefault(inert(str(record["name"])), []).append(record)
    return records


def listed_once(texts: Iterator[str] | Sequence[str]) -> str:
    """Join different texts by "or"; empty ones are left out."""
    return " or ".join(dict.fromkeys(inert(text) for text in texts if text))


def _grouped(
    runs: Sequence[Run], describe: Callable[[Mapping[str, Any]], str]
) -> list[tuple[str, str]]:
    """Describe the tasks of all runs; pairs of a text and the tasks of which it holds.

    The tasks are "" where all have the same text.
    """
    tasks_by_text: dict[str, list[str]] = {}
    records_by_task = _records_by_task(runs)
    for task, records in records_by_task.items():
        text = listed_once(describe(record) for record in records)
        tasks_by_text.setdefault(text, []).append(task)
    return [
        (text, "" if len(tasks) == len(records_by_task) else listed(tasks))
        for text, tasks in tasks_by_text.items()
        if text
    ]


def _prompts_text(runs: Sequence[Run]) -> str:
    def describe(record: Mapping[str, Any]) -> str:
        if not prompt_hash(record):
            return ""
        n_examples = few_shot_text(record)
        examples = "no worked examples"
        if n_examples != "0":
            examples = counted(int(n_examples), "worked example")
        return f"{examples}, template and examples with hash {prompt_hash(record)[:HASH_CHARS]}"

    return _sentences(_grouped(runs, describe), "The tasks' own prompt: ")


def _sentences(groups: Sequence[tuple[str, str]], all_tasks: str = "") -> str:
    return " ".join(
        f"{tasks}: {text}." if tasks else f"{all_tasks}{text}."
        for text, tasks in groups
    )


def _generation_text(runs: Sequence[Run]) -> str:
    seeds = listed_once(
        str(run.data["configuration"]["seed"])
        for run in runs
        if run.data["configuration"].get("seed") is not None
    )
    text = _sentences(_grouped(runs, generation_text))
    if imported := listed_once(map(imported_generation, runs)):
        text = f"{text} Logs say: {imported}.".strip()
    return f"{text} Seed {seeds}.".strip() if seeds else text


def _scoring_text(runs: Sequence[Run]) -> str:
    text = _sentences(_grouped(runs, scorers_text))
    judges = listed_once(
        str(as_section(model).get("name", ""))
        for run in runs
        for model in as_section(run.data.get("roles")).values()
    )
    if judges:
        text += f" Judged by {judges}."
    elif not any(map(import_section, runs)):
        text += " No model judged the answers."
    n_missing = sum(run.n_missing for run in runs)
    n_unsure = sum(run.n_unsure for run in runs)
    if n_missing:
        text += f" {numbers.counted(n_missing, 'answer')} are missing and left out."
    if n_unsure:
        text += f" {numbers.counted(n_unsure, 'score')} of the rules are unsure."
    return text.strip()


def _statistics_text(
    runs: Sequence[Run], comparison: Comparison | SeveralComparison | None
) -> str:
    tasks = [task for run in runs for task in run.tasks if task.main]
    mains = [task.main for task in tasks if task.main]
    levels = listed_once(f"{100 * main.estimate.level:g}%" for main in mains)
    methods = listed(
        [
            *dict.fromkeys(
                inert(main.estimate.method) for main in mains if main.estimate.method
            )
        ]
    )
    sentences = []
    if methods:
        sentences.append(f"Intervals of scores have level {levels} ({methods}).")
    if isinstance(comparison, Comparison):
        tests = listed([*dict.fromkeys(task.result.test for task in comparison.tasks)])
        sentences += [
            f"{inert(comparison.labels[0])} (A) and {inert(comparison.labels[1])} (B)"
            f" were compared by {tests}.",
            comparison.estimand,
        ]
        if len(comparison.tasks) > 1:
            sentences.append(
                "p-values of single tasks are given as they are, and adjusted over the"
                " tasks by Holm's procedure."
            )
    elif isinstance(comparison, SeveralComparison):
        tables = [
            *([comparison.overall] if comparison.overall else []),
            *comparison.tasks,
        ]
        corrections = listed_once(table.correction for table in tables)
        sentences += [f"{comparison.estimand} {corrections}."]
    return " ".join(sentences)


def _software_text(runs: Sequence[Run]) -> str:
    programs = dict.fromkeys(map(_software_of, runs))
    sentences = [f"{program}." for program in programs]
    imported_by = listed_once(
        f"Evalwright {run.data['evalwright']}" for run in runs if import_section(run)
    )
    if imported_by:
        sentences.append(
            f"Logs were read, and their scores summarised, by {imported_by}."
        )
    return " ".join(sentences)


def _software_of(run: Run) -> str:
    environment = as_section(run.data.get("environment"))
    libraries = as_section(environment.get("libraries"))
    program = program_text(run)
    phrases = [inert(program)]
    if commit := environment.get("git_commit"):
        phrases[0] += f" (in a repository at commit {inert(str(commit))[:HASH_CHARS]})"
    if python := python_version(run):
        phrases.append(f"Python {inert(python)}")
    phrases += [
        *(
            f"{inert(str(name))} {inert(str(version))}"
            for name, version in libraries.items()
            if f"{name} {version}" != program
        ),
    ]
    return ", ".join(phrases)
