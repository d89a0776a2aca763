"""Results from strangers: one file with a run's raw answers, checked by scoring them again, and put on a board.

A submission is read as data alone. It names tasks, and those that are installed (or files that the reader names) are what its
answers are scored by; nothing in it is run, opened or fetched.
"""

from __future__ import annotations

from evalwright.analysis.submission.adding import add_submission
from evalwright.analysis.submission.files import Submission, make_submission, read_submission
from evalwright.analysis.submission.verifying import Problem, Verification, verify_submission

__all__ = [
    "Problem", "Submission", "Verification", "add_submission", "make_submission", "read_submission", "verify_submission",
]  # fmt: skip
