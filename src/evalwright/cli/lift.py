"""`evalwright lift`: what passages add to the answers of one run."""

from __future__ import annotations

import click

from evalwright.cli.output import print_json


@click.command()
@click.argument("run")
@click.option(
    "--with", "open_book", default="factual-grounded", metavar="TASK", show_default=True,
    help="The task whose questions come with passages.",
)  # fmt: skip
@click.option(
    "--without", "closed_book", default="factual-grounded-closed-book", metavar="TASK", show_default=True,
    help="The task with the same questions and no passages.",
)  # fmt: skip
@click.option(
    "--scorer", default="answer", show_default=True, metavar="NAME", help="Scores that both tasks have."
)
@click.option(
    "--by", default="answerable", show_default=True, metavar="KEY", help="A metadata key to show apart."
)
@click.option(
    "--level", type=click.FloatRange(0.5, 1.0, max_open=True), default=0.95, show_default=True, metavar="L",
    help="Of the intervals.",
)  # fmt: skip
@click.option(
    "--out", "runs_folder", default="runs", metavar="DIR", help="Where runs given by name lie. Default: runs."
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
def lift(
    run: str,
    open_book: str,
    closed_book: str,
    scorer: str,
    by: str,
    level: float,
    runs_folder: str,
    as_json: bool,
) -> None:
    """Say what passages add in RUN: answers with passages against answers without, paired by question."""
    from evalwright.analysis.lift import passages_lift
    from evalwright.api import open_run

    found = passages_lift(
        open_run(run, runs_folder), open_book, closed_book, scorer=scorer, by=by, level=level
    )
    if as_json:
        print_json(found.as_dict())
        return
    from evalwright.reports.numbers import difference

    click.echo(f"{found.open_book} against {found.closed_book}, run {found.run}")
    for part in found.parts:
        pair = part.comparison
        shown = difference(pair.difference, pair.low, pair.high, bounded=True)
        means = f"with {100 * pair.mean_a:.1f}, without {100 * pair.mean_b:.1f}"
        click.echo(
            f"  {part.questions}: {means}, difference {shown}, {pair.test}: {pair.p_value:.2g}, n = {pair.n:,}"
        )
    for part in found.parts:
        click.echo(f"{part.questions.capitalize()}: {part.sentence}")
