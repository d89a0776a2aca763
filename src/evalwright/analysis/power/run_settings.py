"""What a plan takes from the runs it measures on: their prompts and settings, as a repeat would."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evalwright.analysis.power.opening import MeasuredRun
from evalwright.core.errors import UsageError
from evalwright.evaluation.configuration import Configuration, PromptSpec
from evalwright.evaluation.configuration_file import read_recorded
from evalwright.evaluation.origins import proposed
from evalwright.evaluation.prompts import prompt_record
from evalwright.evaluation.settings import Settings
from evalwright.runs.writer import RUN_FILE

TASK_SETTINGS = {
    "overrides": "settings of tasks (-T, --rubric)",
    "num_fewshot": "--num-fewshot",
    "format": "--format",
    "where": "filters (--where)",
}
"""The settings of runs that a plan takes over, in words."""
_DEFAULTS = Configuration()


def adopt_run_settings(
    evaluation: Settings, sources: Sequence[MeasuredRun]
) -> tuple[Settings, list[str]]:
    """Fill what a plan leaves open with what its runs were made with, if they agree.

    Args:
        evaluation: the planned evaluation, with its models.
        sources: the runs that it is measured on.

    Returns:
        The evaluation with the prompts and settings of the runs, and a sentence for each that it
        took or could not take.
    """
    if not sources:
        return evaluation, []
    recorded = [_read_recorded(source) for source in sources]
    notes = []
    for key, words in TASK_SETTINGS.items():
        by_run = [getattr(configuration, key) for configuration in recorded]
        planned = getattr(evaluation.configuration, key)
        if planned != getattr(_DEFAULTS, key):
            if planned not in by_run:
                notes.append(f"The runs were made with other {words} than the plan's.")
            continue
        if all(setting == getattr(_DEFAULTS, key) for setting in by_run):
            continue
        if any(setting != by_run[0] for setting in by_run):
            notes.append(
                f"The runs differ in their {words}, and the plan has none of them: give"
                " those that you plan with."
            )
        elif proposed({key: _plain(by_run[0])}, Path.cwd()):
            notes.append(
                f"The runs were made with {words} that only you may allow, and the plan"
                " leaves them out: give them again."
            )
        else:
            evaluation = evaluation.having(**{key: by_run[0]})
            notes.append(f"As in the runs: {words}.")
    evaluation, prompt_note = _adopt_prompts(evaluation, sources, recorded)
    return evaluation, [*notes, *prompt_note]


def _read_recorded(source: MeasuredRun) -> Configuration:
    """Read the settings that a run was made with; the defaults where they cannot be read."""
    try:
        return read_recorded(source.run.folder / RUN_FILE)
    except (UsageError, OSError):
        return _DEFAULTS


def _plain(setting: Any) -> Any:
    return json.loads(json.dumps(setting, default=str))


def _adopt_prompts(
    evaluation: Settings,
    sources: Sequence[MeasuredRun],
    recorded: Sequence[Configuration],
) -> tuple[Settings, list[str]]:
    """Take the prompts of the runs, if every model has a run with each of them."""
    hashes = [
        str((source.run.data.get("prompt") or {}).get("hash", "")) for source in sources
    ]
    if evaluation.configuration.prompts or not any(hashes):
        return evaluation, []
    prompts: dict[str, PromptSpec] = {}
    for prompt_hash, configuration in zip(hashes, recorded, strict=True):
        for prompt in configuration.prompts[:1]:
            prompts.setdefault(prompt_hash, prompt)
    names = ", ".join(prompt.name for prompt in prompts.values())
    models = {source.run.model for source in sources}
    cells = {
        (source.run.model, prompt_hash)
        for source, prompt_hash in zip(sources, hashes, strict=True)
    }
    reason = ""
    if not all(prompt_hash in prompts for prompt_hash in hashes):
        reason = "not every run had one"
    elif len(cells) < len(models) * len(prompts):
        reason = "not every model has a run with each of them"
    elif any(
        _hash_now(prompt) != prompt_hash for prompt_hash, prompt in prompts.items()
    ):
        reason = "their files have changed since, or are not there"
    if reason:
        return evaluation, [
            f"The runs had prompts ({names or 'unknown'}), which the plan leaves out:"
            f" {reason}. Name those that you plan with by --prompt."
        ]
    evaluation = evaluation.having(prompts=tuple(prompts.values()))
    noun = "prompt" if len(prompts) == 1 else "prompts"
    return evaluation, [f"As in the runs: the {noun} {names}."]


def _hash_now(prompt: PromptSpec) -> str:
    """The hash that a run with this prompt would have; "" if its file cannot be read."""
    try:
        return prompt_record(prompt)["hash"]
    except (UsageError, OSError):
        return ""
