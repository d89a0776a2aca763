"""`evalwright models test --config FILE`: the three texts, for every model of a suite."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.cli.exit_codes import say
from evalwright.cli.output import echo, print_json
from evalwright.core.errors import ConfigurationError, UsageError
from evalwright.evaluation.common_arguments import without_refused
from evalwright.evaluation.configuration import Configuration
from evalwright.evaluation.configuration_file import read_configuration
from evalwright.evaluation.smoke import CaseResult, SmokeTask, smoke_test
from evalwright.models.registry import open_model

SHOWN_ANSWER_CHARS = 1_200  # a summary of some 200 words
LINE_CHARS = 100


def try_models(
    params: Mapping[str, Any], *, words: int, home: str | None, as_json: bool
) -> int:
    """Ask each model of a suite three questions, as its task does, and print the verdicts.

    A model that cannot be reached does not stop the others.

    Args:
        params: the command's parameters `config`, `suite` and `trust_file`.
        words: length of the longest text.
        home: folder of the store, in place of the suite's.
        as_json: whether to print JSON.

    Returns:
        The exit code: 1 where a model fails a case, 2 where none can be asked.
    """
    configuration = _read_suite(params)
    models, refusals = without_refused(configuration.models, open_model)
    for sentence in refusals:
        say(sentence)
    task = SmokeTask.of(configuration)
    n_failed = 0
    n_refused = 0
    records: list[dict[str, Any]] = []
    for spec in models:
        name = spec.label or spec.model
        if not as_json:
            echo(name)
        try:
            verdicts = smoke_test(
                open_model(spec.model, spec.arguments),
                words=words,
                home=home or configuration.home,
                task=task,
            )
        except UsageError as error:
            if not as_json:
                echo(f"  fail  cannot be asked: {error}")
            records.append({"model": name, "refused": str(error)})
            n_refused += 1
            continue
        if not as_json:
            _show(verdicts)
        cases = [verdict.as_dict() for verdict in verdicts]
        records.append({"model": name, "cases": cases})
        n_failed += any(verdict.result == "fail" for verdict in verdicts)
    if as_json:
        print_json(records)
    if n_refused == len(models):
        return 2
    return int(n_failed + n_refused > 0)


def _read_suite(params: Mapping[str, Any]) -> Configuration:
    file = Path(params["config"])
    suite = params["suite"]
    configuration = read_configuration(file, suite, params["trust_file"])
    if not configuration.models:
        described = f"The suite '{suite}' of {file.name}" if suite else file.name
        raise ConfigurationError(
            f"{described} has no models: name some under 'models:'."
        )
    return configuration


def _show(verdicts: list[CaseResult]) -> None:
    for verdict in verdicts:
        echo(
            f"  {verdict.result:<5} {verdict.case} ({verdict.words:,} words):"
            f" {verdict.why}"
        )
        for line in _answer_lines(verdict.answer):
            echo(f"        {line}")


def _answer_lines(answer: str) -> list[str]:
    """Wrap an answer below its verdict, shortened for reading."""
    text = " ".join(answer.split())
    if len(text) > SHOWN_ANSWER_CHARS:
        text = f"{text[:SHOWN_ANSWER_CHARS].rstrip()} … ({len(answer.split()):,} words)"
    return textwrap.wrap(text, LINE_CHARS)
