"""Judges replies that decline to answer, which is right if the targets say so too."""

from __future__ import annotations

from dataclasses import dataclass

from evalwright.scorers.answers.name_targets import NameTarget, find_mentions
from evalwright.scorers.answers.reply import ParsedReply
from evalwright.scorers.answers.verdict import (
    Verdict,
    correct,
    incorrect,
    not_attempted,
)
from evalwright.scorers.text.declining import NO_INFORMATION, declines, speaks_of_text
from evalwright.scorers.text.folded import fold_text


@dataclass(frozen=True)
class PhraseReader:
    """Judges replies to questions whose targets say that there is no answer ("not stated")."""

    targets: tuple[NameTarget, ...]

    def judge(self, reply: ParsedReply) -> Verdict:
        """Judge whether a reply, which is not empty, says that there is no answer."""
        if find_mentions(fold_text(reply.text), self.targets):
            return correct("one of the expected phrases")

        declined = declines(reply.text)
        if declined and declined.kind == NO_INFORMATION and speaks_of_text(declined):
            return correct(
                f"says that there is no answer: {declined}",
                "in other words than the target",
            )
        return judge_declining(reply) or incorrect(
            "none of the expected phrases in the answer"
        )


def judge_declining(reply: ParsedReply) -> Verdict | None:
    """Return the verdict on a reply that declines to answer; None if it does not decline."""
    text = f"{reply.text}\n{reply.after}" if reply.marked else reply.text
    declined = declines(text)
    if declined is None:
        return None
    if "depend" in declined.words:
        return not_attempted(f"says {declined}", "what it depends on may be an answer")
    return not_attempted(f"gives no answer: {declined}")
