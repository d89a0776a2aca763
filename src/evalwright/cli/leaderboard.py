"""`evalwright leaderboard`: runs as a table, with intervals and rank ranges."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright.cli.output import print_json, write_file


@click.command()
@click.argument("runs", nargs=-1, required=True)
@click.option(
    "--out", "runs_folder", default="runs", metavar="DIR", help="Where runs given by name lie. Default: runs."
)
@click.option("--markdown", metavar="FILE", help="Write the board as a Markdown table.")
@click.option("--html", metavar="FILE", help="Write the board as one self-contained HTML page.")
@click.option("--title", default="Leaderboard", show_default=True, help="The page's title.")
@click.option("--json", "as_json", is_flag=True, help="Print the board as JSON.")
def leaderboard(
    runs: tuple[str, ...], runs_folder: str, markdown: str | None, html: str | None, title: str, as_json: bool
) -> None:
    """Make a leaderboard of RUNS (folders or names): every score with its interval, ranks as ranges."""
    from evalwright.api import open_run
    from evalwright.cli import say
    from evalwright.reports.terminal import show_board
    from evalwright.runs.board import make_board

    opened = [open_run(run, runs_folder) for run in runs]
    board = make_board(opened)
    if markdown:
        from evalwright.reports.markdown import board_markdown

        write_file(Path(markdown), board_markdown(board))
    if html:
        from evalwright.reports.html import board_html

        write_file(Path(html), board_html(board, opened, title=title))
    if as_json:
        print_json(board.as_dict())
    else:
        show_board(board)
    for file in (markdown, html):
        if file:
            say(f"Written: {file}")
