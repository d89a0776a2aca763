"""Samples of a run: one line for each, or everything that is recorded of each."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

from evalwright.reports import document as doc
from evalwright.reports.documents.aligned_transcripts import aligned_blocks
from evalwright.reports.documents.sentences import judge_names, sentence_blocks
from evalwright.reports.documents.transcripts import (
    StepChoice,
    transcript_blocks,
)
from evalwright.reports.text import cell_width, inert, shorten
from evalwright.runs.recorded_answers import (
    CALLS_METADATA,
    expected_calls,
    is_trajectory,
    loop_facts,
    whole_answer,
    written_calls,
)
from evalwright.runs.transcripts import read_transcript

if TYPE_CHECKING:
    from evalwright.analysis.sample_search import FoundSample
    from evalwright.models.local.recorded_prompts import RenderMessages
    from evalwright.runs.reader import Run

_LONGEST_CELL = 160
_WIDEST_NAMES = 36
"""Most terminal cells for ids and tasks in a table, so that the other columns fit into 80."""

_REQUEST_TYPES = (
    "generate",
    "log_likelihood",
    "rolling",
    "embed",
    "classify",
    "reward",
)
"""Request types, which are the keys of a recorded request's text."""


def samples_document(
    run: Run,
    matches: Sequence[FoundSample],
    against: Run | None = None,
    *,
    in_full: bool = False,
    most: int | None = None,
    hints: Sequence[str] = (),
    choice: StepChoice | None = None,
) -> doc.Document:
    """Show the samples of a run that match a search.

    Args:
        run: The run that was searched.
        matches: The matching samples.
        against: A run that scored these samples differently.
        in_full: Whether to show everything that is recorded of each sample, or a line.
        most: The requested number of samples.
        hints: Sentences on why no sample matches.
        choice: Which steps of trajectories to show in full; None for all.
    """
    title = f"Samples of {run.name}"
    if not matches:
        return doc.Document(title, [_no_match(against, hints)])

    blocks: list[doc.Block] = []
    if in_full:
        template = _recorded_template(run)
        names = judge_names(run)
        for match in matches:
            blocks += _full_sample(match, against, template, names, choice)
    else:
        blocks += _short_samples(matches, against)

    if most is not None and len(matches) == most:
        first = f"{most:,} are" if most > 1 else "one is"
        note = f"The first {first} shown; --limit N shows more."
        blocks.append(doc.Note(note, "quiet"))

    sample_id = str(matches[0].row["id"])
    if not in_full and sample_id.isprintable():
        command = _full_sample_command(run.name, sample_id)
        blocks.append(doc.Note(f"One sample in full: {command}", "quiet"))

    return doc.Document(title, blocks)


def _no_match(against: Run | None, hints: Sequence[str]) -> doc.Note:
    sentences = ["No samples match."]
    if against is not None:
        sentences.append(f"No item has another score in '{against.name}'.")
    return doc.Note(" ".join([*sentences, *hints]))


def _full_sample_command(run_name: str, sample_id: str) -> str:
    end_of_options = "-- " if sample_id.startswith("-") else ""
    return (
        f"evalwright runs samples {quote(run_name)} {end_of_options}{quote(sample_id)}"
    )


# -- a line for each sample ------------------------------------------------------------


def _short_samples(
    matches: Sequence[FoundSample], against: Run | None
) -> Iterator[doc.Block]:
    """Build a table of samples in which names are never wrapped.

    Names that are too long for it become headings: ids above facts, or tasks above a table each.
    """
    tasks = list(dict.fromkeys(str(match.row["task"]) for match in matches))
    several_tasks = len(tasks) > 1
    id_width = max(cell_width(inert(match.row["id"])) for match in matches)
    task_width = max(cell_width(inert(task)) for task in tasks)

    if id_width > _WIDEST_NAMES:
        for match in matches:
            yield doc.Heading(shorten(inert(match.row["id"]), 300))
            yield _short_facts(match, against, show_task=several_tasks)
        return

    if several_tasks and id_width + task_width > _WIDEST_NAMES:
        for task in tasks:
            of_task = [match for match in matches if match.row["task"] == task]
            yield doc.Heading(inert(task))
            yield _samples_table(of_task, against)
        return

    yield _samples_table(matches, against, show_task=several_tasks)


def _short_facts(
    match: FoundSample, against: Run | None, *, show_task: bool
) -> doc.Facts:
    facts = []
    if show_task:
        facts.append(("Task", match.row["task"]))
    facts.append(("Result", _score_text(match)))
    if against:
        facts.append(("Other run", _number(match.other_score)))
    facts.append(("Answer", _short_answer(match.row)))
    facts.append(("Expected", _short_target(match.row)))
    return doc.Facts(facts)


def _samples_table(
    matches: Sequence[FoundSample], against: Run | None, *, show_task: bool = False
) -> doc.Table:
    titles = [
        "Sample",
        *(["Task"] if show_task else []),
        "Result~",
        *(["Other run>"] if against else []),
        "Answer~",
        "Expected~",
    ]
    rows: list[list[doc.Content]] = []
    for match in matches:
        row = match.row
        has_failed = bool(row.get("failure") or row.get("score_failures"))
        cells: list[doc.Content] = [doc.Cell(str(row["id"]), "strong", name=True)]
        if show_task:
            cells.append(doc.Cell(str(row["task"]), name=True))
        cells.append(doc.Cell(_score_text(match), "bad" if has_failed else ""))
        if against:
            cells.append(_number(match.other_score))
        cells += [_short_answer(row), _short_target(row)]
        rows.append(cells)
    return doc.Table(doc.columns(*titles), rows, "Samples")


def _score_text(match: FoundSample) -> str:
    """Format the main score and its label, or the reason why there is none."""
    score = "" if math.isnan(match.score) else _number(match.score)
    label = _label_text(match.row, match.scorer)
    return " ".join(filter(None, (score, label))) or "no score"


def _label_text(row: Mapping[str, Any], main_scorer: str) -> str:
    """Return the main scorer's label, and other scorers' labels that differ, with their names."""
    if row.get("failure"):
        return f"missing: {row['failure']['kind']}"

    labels: dict[str, str] = {}
    for name, score in row["scores"].items():
        label = score.get("label", "")
        labels[name] = f"{label} (unsure)".strip() if score.get("unsure") else label
    if not labels and row["outcome"] != "answered":
        return str(row["outcome"]).replace("_", " ")

    main_label = labels.get(main_scorer, "")
    texts = [main_label] if main_label else []
    for name, label in labels.items():
        if name != main_scorer and label not in ("", main_label):
            texts.append(f"{name} {label}")
    texts += [f"{name} failed" for name in row.get("score_failures", ())]
    return ", ".join(texts)


def _short_answer(row: Mapping[str, Any]) -> str:
    return shorten(_on_one_line(whole_answer(row)), _LONGEST_CELL)


def _short_target(row: Mapping[str, Any]) -> str:
    """Return the first right answer, and how many more there are."""
    targets = [_on_one_line(text) for text in right_answers(row)]
    if not targets:
        return ""
    more = f" (+{len(targets) - 1} more)" if len(targets) > 1 else ""
    return shorten(targets[0], _LONGEST_CELL - len(more)) + more


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def right_answers(row: Mapping[str, Any]) -> list[str]:
    """List the right answers of a record: its targets, else the choices or calls that are right."""
    if row["targets"]:
        return [str(target) for target in row["targets"]]
    calls = expected_calls(row)
    if calls is not None:
        return [calls]
    choices = row.get("choices") or ()
    gold = row.get("gold") or ()
    return [
        str(choices[i]) for i in gold if isinstance(i, int) and 0 <= i < len(choices)
    ]


# -- everything that is recorded of a sample -------------------------------------------


def _recorded_template(run: Run) -> RenderMessages | None:
    """Return how the run's model writes messages as text; None if its record does not say."""
    model_facts = run.data["model"]
    if not isinstance(model_facts, Mapping) or not model_facts.get("template"):
        return None
    from evalwright.models.local.recorded_prompts import prompt_renderer

    return prompt_renderer(model_facts)


def _formatted_prompt(
    row: Mapping[str, Any], template: RenderMessages | None
) -> Iterator[doc.Text]:
    """Show the text that the model's chat template made of the recorded messages."""
    prompt = row.get("prompt")
    if template is None or not prompt or isinstance(prompt, str):
        return
    from evalwright.core.requests import prompt_from

    messages = prompt_from(prompt)
    text = None if isinstance(messages, str) else template(messages)
    if text is not None:
        yield doc.Text("Prompt as the chat template writes it", text)


def _full_sample(
    match: FoundSample,
    against: Run | None,
    template: RenderMessages | None,
    names: Mapping[str, str],
    choice: StepChoice | None,
) -> Iterator[doc.Block]:
    row = match.row
    choice = choice or StepChoice()
    repeat = f", repeat {row['draw']}" if row.get("draw") else ""
    yield doc.Heading(f"{shorten(str(row['id']), 100)}{repeat}")
    transcript = read_transcript(row)
    if choice.step is not None or choice.tool:
        if transcript is None:
            yield doc.Note("This sample has no steps: its model called no tools.")
        else:
            yield from transcript_blocks(transcript, choice)
        return
    yield doc.Facts(_full_facts(match, against))
    if transcript is None:
        yield from _turns(row.get("prompt") or row["input"], "Prompt")
        yield from _formatted_prompt(row, template)
        yield from _responses(row)
    else:
        yield from transcript_blocks(transcript, choice)
        if choice.whole:
            yield from _formatted_prompt(row, template)
        if row.get("answer"):
            yield doc.Text("Answer as scored", row["answer"])
    if offered := row.get("tools"):
        yield doc.Text("Tools offered", "\n".join(map(_tool_line, offered)))
    if len(row.get("choices") or ()) > 1:
        yield doc.Text("Choices", "\n".join(_choices(row)))
    if targets := right_answers(row):
        yield doc.Text("Expected", "\n".join(targets))
    yield from sentence_blocks(row, names)
    yield from _scores(row)

    if against is not None and match.theirs:
        prefix = f"{shorten(against.name, 60)}: "
        yield from _responses(match.theirs, prefix)
        yield from _scores(match.theirs, prefix)


def aligned_document(
    row_a: Mapping[str, Any],
    row_b: Mapping[str, Any],
    names: tuple[str, str],
    *,
    whole: bool = False,
) -> doc.Document:
    """Show the steps of two records of one sample beside each other.

    Args:
        row_a: one record.
        row_b: the other.
        names: what they are called, such as their runs.
        whole: whether every step has a line.
    """
    title = f"{shorten(str(row_a['id']), 100)}, step by step"
    a = read_transcript(row_a)
    b = read_transcript(row_b)
    if a is None or b is None:
        note = "These samples have no steps to compare: a model called no tools."
        return doc.Document(title, [doc.Note(note)])
    return doc.Document(title, [*aligned_blocks(a, b, names, StepChoice(whole=whole))])


def _tool_line(tool: Mapping[str, Any]) -> str:
    description = _on_one_line(str(tool.get("description", "")))
    separator = ": " if description else ""
    return f"{tool['name']}{separator}{shorten(description, _LONGEST_CELL)}"


def _full_facts(match: FoundSample, against: Run | None) -> list[tuple[str, str]]:
    row = match.row
    facts = [
        ("Task", row["task"]),
        ("Outcome", row["outcome"]),
        ("Score", _number(match.score)),
    ]
    if against is not None:
        facts.append(
            (f"Score of {shorten(against.name, 40)}", _number(match.other_score))
        )

    usages = [response.get("usage") for response in row.get("responses", ())]
    usages = [usage for usage in usages if usage]
    if usages:
        n_input = sum(usage.get("input_tokens", 0) for usage in usages)
        n_output = sum(usage.get("output_tokens", 0) for usage in usages)
        facts.append(("Tokens", f"{n_input:,} in, {n_output:,} out"))

    latencies = row.get("timing", {}).get("latency", ())
    # Options that were scored together have the same latency.
    times = [f"{seconds:.2f} s" for seconds in dict.fromkeys(latencies) if seconds]
    if times and not is_trajectory(row):
        facts.append(("Latency", ", ".join(times)))

    if loop := loop_facts(row):
        n_calls, n_failed = loop["tool_calls"], loop["failed_calls"]
        facts.append(
            ("Steps", f"{loop['steps']}, {n_calls} calls of tools, {n_failed} failed")
        )
        facts.append(("Ended by", str(loop["ended"])))

    shown_elsewhere = {"doc", "row"}
    if not row["targets"] and expected_calls(row) is not None:
        shown_elsewhere.add(CALLS_METADATA)
    for name, metadata_value in row.get("metadata", {}).items():
        if name not in shown_elsewhere:
            facts.append((name, shorten(_written(metadata_value), _LONGEST_CELL)))
    return facts


def _written(metadata_value: Any) -> str:
    """Write lists and mappings as JSON, as the row has them; anything else as text."""
    if isinstance(metadata_value, list | dict):
        return json.dumps(metadata_value, ensure_ascii=False)
    return str(metadata_value)


def _choices(row: Mapping[str, Any]) -> Iterator[str]:
    """Write a line for each choice, with its log-likelihood if there is one."""
    log_likelihoods = row.get("log_likelihoods") or ()
    for index, choice in enumerate(row["choices"]):
        letter = f"{chr(ord('A') + index)}. " if index < 26 else ""
        suffix = ""
        if index < len(log_likelihoods):
            suffix = f" (log-likelihood {_number(log_likelihoods[index])})"
        yield f"{letter}{choice}{suffix}"


def _responses(row: Mapping[str, Any], prefix: str = "") -> Iterator[doc.Text]:
    """Show the model's replies, and the answer if it is not just their text."""
    responses = row.get("responses", ())
    for number, response in enumerate(responses, 1):
        which = f" {number} of {len(responses)}" if len(responses) > 1 else ""
        reason = response.get("finish_reason")
        ended = f" (ended by {reason})" if reason else ""
        if response.get("reasoning"):
            yield doc.Text(f"{prefix}Reasoning{which}", response["reasoning"])
        if response.get("text"):
            yield doc.Text(f"{prefix}Reply{which}{ended}", response["text"])
        # The calls of earlier replies are turns of the prompt.
        if response.get("tool_calls") and number == len(responses):
            calls = written_calls(response["tool_calls"])
            yield doc.Text(f"{prefix}Tool calls{which}", "\n".join(calls))

    reply_texts = [response.get("text") for response in responses]
    is_call = bool(responses and responses[-1].get("tool_calls"))
    if (
        "answer" in row
        and reply_texts != [row["answer"]]
        and (row["answer"] or not is_call)
    ):
        yield doc.Text(f"{prefix}Answer as scored", row["answer"])


def _scores(row: Mapping[str, Any], prefix: str = "") -> Iterator[doc.Text]:
    """Show the scores with their reasons, failures of scorers, and the requests to judges."""
    answer = row.get("answer", "")
    for name, score in row["scores"].items():
        title = f"{prefix}{name}: {_number(score['value'])} {score.get('label', '')}"
        lines = [score.get("explanation", "")]
        for start, end in score.get("evidence", ()):
            lines.append(f"Evidence: {answer[start:end]}")
        if score.get("unsure"):
            lines.append(f"Unsure: {score['unsure']}")
        yield doc.Text(title.rstrip(), "\n".join(filter(None, lines)))

    failures = list(row.get("score_failures", {}).items())
    if row.get("failure"):
        failures.insert(0, ("failed", row["failure"]))
    for name, failure in failures:
        title = f"{prefix}{name}: {failure['kind']} ({failure['party']})"
        yield doc.Text(title, failure["message"])

    for name, exchanges in row.get("exchanges", {}).items():
        for exchange in exchanges:
            yield from _exchange(exchange, f"{prefix}{name}: ")


def _exchange(exchange: Mapping[str, Any], prefix: str) -> Iterator[doc.Text]:
    """Show what a scorer sent to a model, such as a judge, and what the model replied."""
    request = exchange["request"]
    role = exchange["role"]
    prompts = [request[name] for name in _REQUEST_TYPES if name in request]
    yield from _turns(prompts[0] if prompts else "", f"{prefix}sent to {role}")

    response = exchange.get("response", {})
    numbers = ", ".join(f"{number:.4g}" for number in response.get("values", ()))
    reply = response.get("text") or numbers or "nothing"
    yield doc.Text(f"{prefix}{role} replied", reply)


def _turns(prompt: Any, title: str) -> Iterator[doc.Text]:
    """Show a prompt, with a text for each turn."""
    if isinstance(prompt, str):
        yield doc.Text(title, prompt)
        return

    for turn in prompt:
        role, content, *extras = turn if isinstance(turn, list) else ("", turn)
        tool_fields = extras[0] if extras else {}
        pieces = [content] if isinstance(content, str) else content
        lines = [
            piece if isinstance(piece, str) else f"[image {piece}]" for piece in pieces
        ]
        lines += [
            f"call {call}" for call in written_calls(tool_fields.get("tool_calls", ()))
        ]
        name = f"{role} {tool_fields.get('tool_name', '')}".rstrip()
        failed = " (failed)" if tool_fields.get("is_error") else ""
        yield doc.Text(
            f"{title}, {name}{failed}" if role else title,
            "\n".join(filter(None, lines)),
        )


def _number(number: float | None) -> str:
    return "none" if number is None or math.isnan(number) else f"{number:.4g}"
