"""Writes the comment of an evaluation that stopped: what was being done, and the error.

    failure.py STAGE ERRORS COMMENT

STAGE says in words what was being done, ERRORS is the file with what was written to stderr, and
COMMENT the Markdown file to write. Keys are masked, and nothing in the error acts as Markdown.
"""

import re
import sys
from pathlib import Path

from evalwright.core.secrets import mask_message, remember_environment
from evalwright.reports import document as doc
from evalwright.reports.markdown import to_markdown

MAX_ERROR_CHARS = 4_000
"""The end of an error says what went wrong; the job's log has all of it."""
TERMINAL_CODES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def failure_document(stage: str, errors: str) -> doc.Document:
    """The document on an evaluation that stopped.

    Args:
        stage: what was being done, such as "evaluating the base branch".
        errors: what was written to stderr.
    """
    remember_environment()
    error = mask_message(TERMINAL_CODES.sub("", errors)).strip()
    if len(error) > MAX_ERROR_CHARS:
        error = f"…{error[-MAX_ERROR_CHARS:]}"
    verdict = (
        f"Stopped while {stage}: nothing was compared, and no rule was judged, so this"
        " says neither that the change is good nor that it is bad."
    )
    blocks: list[doc.Block] = [doc.Conclusion(verdict, "bad")]
    if error:
        blocks.append(doc.Text("Error", error))
    blocks.append(doc.Note("The job's log has everything that was printed."))
    return doc.Document("Evaluation of this change: stopped", blocks)


def main(stage: str, errors: str, comment: str) -> None:
    """Write the comment."""
    text = Path(errors).read_text(encoding="utf-8", errors="replace")
    markdown = to_markdown(failure_document(stage, text), 2)
    Path(comment).write_text(markdown, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
