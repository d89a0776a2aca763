"""How a run was made, from its record: prompts, generation, data, software, and its import.

The explorer and `runs show --details` list these facts; `export methods` writes sentences of them.
A record of another program lacks some, and then so do the lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from evalwright.reports.text import inert, inert_lines, shorten
from evalwright.runs.reader import Run

Facts = list[tuple[str, str]]

TEMPLATE = "Prompt template"
"""How the names of facts begin whose text is a template, of several lines."""
MOST_TASK_NAMES = 4
"""Names of tasks that a fact lists before it counts the others."""
MOST_OF_CELLS = 32
"""Width of the tasks in the name of a fact; a name does not wrap."""


def provenance_facts(run: Run) -> Facts:
    """List how a run was made, as (name, text) pairs; a template has several lines."""
    environment = as_section(run.data.get("environment"))
    libraries = as_section(environment.get("libraries"))
    facts = [
        *(
            (f"{TEMPLATE}{tasks_clause}", text)
            for tasks_clause, text in _by_tasks(run, template_text)
        ),
        *(
            (f"Hash of the prompt{tasks_clause}", text)
            for tasks_clause, text in _by_tasks(run, prompt_hash)
        ),
        *(
            (f"Few-shot examples{tasks_clause}", text)
            for tasks_clause, text in _by_tasks(run, few_shot_text)
        ),
        *(
            (f"Generation{tasks_clause}", text)
            for tasks_clause, text in _by_tasks(run, generation_text)
        ),
        *(
            (f"Scorers{tasks_clause}", text)
            for tasks_clause, text in _by_tasks(run, scorers_text)
        ),
        *(
            (f"Hash of the data{tasks_clause}", text)
            for tasks_clause, text in _by_tasks(run, data_hash)
        ),
        *_import_facts(run),
        ("Python", python_version(run)),
        (
            "Libraries",
            ", ".join(f"{name} {version}" for name, version in libraries.items()),
        ),
        ("Git commit", str(environment.get("git_commit") or "")),
    ]
    return [(inert(name), inert_lines(text)) for name, text in facts if text]


def program_text(run: Run) -> str:
    """Name the program that made the run: "Evalwright 0.1.0", "inspect_ai 0.3.240"."""
    imported = import_section(run)
    own_version = str(run.data.get("evalwright", ""))
    if not imported:
        return f"Evalwright {own_version}"
    program = str(imported.get("format") or "another program")
    libraries = as_section(as_section(run.data.get("environment")).get("libraries"))
    version = libraries.get(program) or libraries.get(program.replace("_", "-")) or ""
    return f"{program} {version}".strip()


def python_version(run: Run) -> str:
    """Return the version of Python that made the run; "" where it is not known."""
    version = as_section(run.data.get("environment")).get("python")
    return "" if version in (None, "unknown") else str(version)


def import_section(run: Run) -> Mapping[str, Any]:
    """Return what a run's import recorded; empty for a run of this program."""
    return as_section(as_section(run.data.get("configuration")).get("imported"))


def as_section(section: Any) -> Mapping[str, Any]:
    """Return a part of a record if it is a mapping, else an empty one."""
    return section if isinstance(section, Mapping) else {}


def template_text(record: Mapping[str, Any]) -> str:
    """Write a task's prompt template, its parts under their names."""
    prompt = as_section(as_section(record.get("definition")).get("prompt"))
    named_templates = [
        f"{name}: {prompt[name]}"
        for name in ("system", "user", "prefill")
        if isinstance(prompt.get(name), str) and prompt[name]
    ]
    return "\n".join(named_templates)


def prompt_hash(record: Mapping[str, Any]) -> str:
    """Hash a task's prompt with its few-shot examples; "" where the record has none."""
    prompt = as_section(as_section(record.get("definition")).get("prompt"))
    if not prompt:
        return ""
    text = json.dumps(
        prompt,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        default=str,
    )
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def few_shot_text(record: Mapping[str, Any]) -> str:
    """Count the worked examples in a task's prompt; "" where the record does not say."""
    prompt = as_section(as_section(record.get("definition")).get("prompt"))
    if not prompt:
        return ""
    few_shot = as_section(prompt.get("few_shot"))
    return str(few_shot.get("count", 0))


def generation_text(record: Mapping[str, Any]) -> str:
    """Describe how a task's answers were generated: temperature, limits, stops, draws."""
    answer = as_section(as_section(record.get("definition")).get("answer"))
    phrases: list[str] = []
    for name, setting in answer.items():
        if name == "mode":
            phrases.insert(0, str(setting).replace("_", " "))
        elif name == "stop" and isinstance(setting, Sequence) and setting:
            phrases.append(f"stop at {', '.join(map(repr, setting))}")
        elif name == "draws":
            phrases.append(f"{setting} draw{'' if setting == 1 else 's'}")
        elif isinstance(setting, str | int | float) and setting != "":
            phrases.append(f"{name.replace('_', ' ')} {setting}")
    return ", ".join(phrases)


def scorers_text(record: Mapping[str, Any]) -> str:
    """Name a task's scorers, with their kinds where these are not their names."""
    names = []
    for scorer in record.get("scorers") or ():
        scorer = as_section(scorer)
        name = str(scorer.get("name", ""))
        kind = str(scorer.get("kind", ""))
        names.append(name if kind in ("", name) else f"{name} ({kind})")
    return ", ".join(filter(None, names))


def data_hash(record: Mapping[str, Any]) -> str:
    """Return the hash of a task's data."""
    return str(record.get("content_hash") or "")


def _by_tasks(run: Run, describe: Any) -> list[tuple[str, str]]:
    """Describe each task of a run; tasks with the same text share an entry.

    Returns:
        Pairs of " of TASK, TASK" and the text. The first is "" where all tasks agree.
    """
    names_by_text: dict[str, list[str]] = {}
    tasks = run.data.get("tasks") or []
    for record in tasks:
        names_by_text.setdefault(describe(record), []).append(str(record["name"]))
    described = []
    for text, names in names_by_text.items():
        tasks_clause = shorten(inert(f" of {shortened_list(names)}"), MOST_OF_CELLS)
        if text:
            described.append(("" if len(names) == len(tasks) else tasks_clause, text))
    return described


def shortened_list(names: Sequence[str]) -> str:
    """Join names, with a count in place of those beyond the first few."""
    listed = ", ".join(names[:MOST_TASK_NAMES])
    n_more = len(names) - MOST_TASK_NAMES
    return f"{listed} and {n_more} more" if n_more > 0 else listed


def _import_facts(run: Run) -> Iterator[tuple[str, str]]:
    """List what the other program recorded on how it made the run."""
    imported = import_section(run)
    if not imported:
        return
    yield "Made with", program_text(run)
    origin = [str(imported[key]) for key in ("format", "file") if imported.get(key)]
    yield "Imported from", ", ".join(origin)
    yield "Status there", str(imported.get("status") or "")
    evaluation = as_section(imported.get("eval"))
    yield "Date there", str(evaluation.get("created") or "")
    configuration = as_section(evaluation.get("config"))
    yield "Epochs", str(configuration.get("epochs") or "")
    yield "Scorers there", ", ".join(_scorer_names(imported))
    dataset = as_section(evaluation.get("dataset"))
    yield (
        "Data set there",
        ", ".join(
            str(dataset[key]) for key in ("name", "location") if dataset.get(key)
        ),
    )
    yield "Generation there", imported_generation(run)


def imported_generation(run: Run) -> str:
    """Describe the settings with which a log of inspect_ai says that answers were generated."""
    evaluation = as_section(import_section(run).get("eval"))
    generation = as_section(evaluation.get("model_generate_config"))
    return ", ".join(
        f"{name.replace('_', ' ')} {setting}"
        for name, setting in generation.items()
        if setting is not None
    )


def _scorer_names(imported: Mapping[str, Any]) -> list[str]:
    """List the scorers of a log of inspect_ai."""
    scorers = as_section(imported.get("eval")).get("scorers")
    if not isinstance(scorers, list):
        scorers = as_section(imported.get("results")).get("scores")
    if not isinstance(scorers, list):
        return []
    names = (str(as_section(scorer).get("name") or "") for scorer in scorers)
    return [*dict.fromkeys(filter(None, names))]
