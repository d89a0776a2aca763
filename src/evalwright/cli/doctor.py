"""`evalwright doctor`: does it work here, with the real providers, the hub and the devices?"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.options import AS_JSON, PLUGINS, flag, only_with, option, several
from evalwright.cli.output import echo, print_json

if TYPE_CHECKING:
    from evalwright.engine.budget import Limits
    from evalwright.evaluation.doctor.checks import Check
    from evalwright.evaluation.doctor.providers import PlannedRequest

PARTS = ("providers", "hub", "devices")


@click.command()
@flag(
    "--live",
    "Also send requests to providers, fetch from the hub and compute on the devices.",
)
@several(
    "--only",
    "PART",
    "With --live: of providers, hub and devices, only this.",
    type=click.Choice(PARTS),
)
@several(
    "--model models",
    "MODEL",
    "With --live: this model, in place of an example of each provider with a key.",
)
@option("--budget", "SUM", "With --live: send no more than this. Default: 0.05 USD.")
@flag(
    "--unpriced",
    "With --live: also models whose price is not known, which a sum of dollars cannot"
    " hold.",
)
@flag("--yes", "With --live: do not ask before sending.")
@option(
    "--out",
    "FILE",
    "With --live: where the report goes, as JSON. Default: doctor.json.",
)
@PLUGINS
@AS_JSON
def doctor(live: bool, as_json: bool, **given: Any) -> int:
    """Say what works here: versions, libraries, store, keys and devices; with --live real
    providers, hub and devices.

    Without --live nothing is sent. With it, what is sent and the most that it can cost are shown
    first. The report names no key. Exit code 1 where something fails.
    """
    from evalwright.cli.arguments import load_plugins
    from evalwright.evaluation.doctor.checks import Report
    from evalwright.evaluation.doctor.here import check_here

    only_with(
        only="live",
        models="live",
        budget="live",
        unpriced="live",
        yes="live",
        out="live",
    )
    load_plugins(given["plugins"])
    if live:
        _check_can_be_written(Path(given["out"] or "doctor.json"))
    started = datetime.now(UTC).isoformat(timespec="seconds")
    show = (lambda check: None) if as_json else _show
    checks = _taken(check_here(), show)
    ceiling: dict[str, float] = {}
    spent: dict[str, float] = {}
    if live:
        more, ceiling, spent = _live(given, as_json, show)
        checks += more
    report = Report(started, checks, ceiling, spent)
    data = report.as_dict()
    if live:
        _write(Path(given["out"] or "doctor.json"), data)
    if as_json:
        print_json(data)
    else:
        echo(
            ", ".join(
                f"{number} {outcome}"
                for outcome, number in report.counts().items()
                if number
            )
        )
        if live:
            echo(f"Report: {given['out'] or 'doctor.json'} (no keys in it)")
    return int(report.has_failures)


def _live(
    given: dict[str, Any], as_json: bool, show: Callable[[Check], None]
) -> tuple[list[Check], dict[str, float], dict[str, float]]:
    """The checks, the ceiling and what was spent."""
    from evalwright.evaluation.budgets import parse_budget
    from evalwright.evaluation.doctor.devices import check_devices
    from evalwright.evaluation.doctor.hub import check_hub
    from evalwright.evaluation.doctor.providers import (
        DEFAULT_CEILING,
        plan_requests,
        send_requests,
    )

    parts = given["only"] or PARTS
    if given["models"] and "providers" not in parts:
        raise click.UsageError(
            "--model has no effect without the part 'providers': leave one of them out."
        )
    limits = parse_budget([given["budget"] or DEFAULT_CEILING])
    checks: list[Check] = []
    spent: dict[str, float] = {}
    if "providers" in parts:
        planned, skipped = plan_requests(given["models"], unpriced=given["unpriced"])
        checks += _taken(skipped, show)
        if planned and _agreed(planned, limits, given["yes"]):
            sent, budget = send_requests(
                planned, limits, lambda sentence: echo(sentence, error=True)
            )
            checks += _taken(sent, show)
            spent = budget.spent.as_dict()
            if not as_json:
                echo(f"Spent: {_shown(spent)}")
        elif planned:
            checks += _taken(_declined(planned), show)
        elif not skipped and not as_json:
            echo("No provider's key is set, so nothing is sent to providers.")
    if "hub" in parts:
        checks += _taken(check_hub(), show)
    if "devices" in parts:
        checks += _taken(check_devices(), show)
    return checks, limits.as_dict(), spent


def _agreed(planned: Sequence[PlannedRequest], limits: Limits, yes: bool) -> bool:
    """Say what is to be sent and the ceiling, and ask. Raises UsageError where nobody can be asked."""
    dollars = sum(request.dollars or 0.0 for request in planned)
    subjects = list(dict.fromkeys(request.subject for request in planned))
    unpriced = list(
        dict.fromkeys(request.subject for request in planned if request.dollars is None)
    )
    echo(f"To be sent: {len(planned)} requests to {', '.join(subjects)}.", error=True)
    echo(
        f"They cost ${dollars:.4f} at the most, and no more than"
        f" {_shown(limits.as_dict())} is spent.",
        error=True,
    )
    if unpriced:
        tokens = sum(request.tokens for request in planned if request.dollars is None)
        echo(
            f"Of unknown price, at most {tokens:,} tokens: {', '.join(unpriced)}.",
            error=True,
        )
    if yes:
        return True
    try:
        interactive = sys.stdin.isatty()
    except (AttributeError, ValueError):
        interactive = False
    if not interactive:
        raise click.UsageError(
            "Nobody can be asked whether to send this, because there is no terminal:"
            " add --yes."
        )
    with suppress(click.Abort):
        return click.confirm("Send them?", err=True)
    return False


def _declined(planned: Sequence[PlannedRequest]) -> list[Check]:
    from evalwright.evaluation.doctor.checks import Check

    return [
        Check("provider", request.subject, request.name, "skipped", "you said no")
        for request in planned
    ]


def _taken(checks: Any, show: Callable[[Check], None]) -> list[Check]:
    """The checks, each shown as soon as it is known."""
    taken = []
    for check in checks:
        show(check)
        taken.append(check)
    return taken


def _show(check: Check) -> None:
    echo(
        f" {check.subject}: {check.name}{f'; {check.why}' if check.why else ''}",
        before=f"{check.outcome:<8}",
        bold=True,
    )


def _shown(sums: dict[str, float]) -> str:
    words = {
        "dollars": "${:,.4f}",
        "requests": "{:,.0f} requests",
        "tokens": "{:,.0f} tokens",
    }
    return (
        ", ".join(words[name].format(number) for name, number in sums.items())
        or "nothing"
    )


def _check_can_be_written(file: Path) -> None:
    """Raise ConfigurationError before anything is sent whose report could not be kept."""
    from evalwright.core.errors import ConfigurationError

    folder = next(parent for parent in file.absolute().parents if parent.exists())
    can_write = folder.is_dir() and os.access(folder, os.W_OK)
    why = (
        "it is a folder"
        if file.is_dir()
        else ""
        if can_write
        else f"{folder} cannot be written"
    )
    if why:
        raise ConfigurationError(
            f"The report cannot be written to '{file}': {why}. Name another file with"
            " --out."
        )


def _write(file: Path, data: dict[str, Any]) -> None:
    from evalwright.core.errors import ConfigurationError
    from evalwright.tasks.files import write_text

    try:
        write_text(
            file.resolve(), json.dumps(data, indent=1, ensure_ascii=False) + "\n"
        )
    except OSError as error:
        raise ConfigurationError(
            f"The report cannot be written to '{file}': {error.strerror}. Name another"
            " file with --out."
        ) from None
