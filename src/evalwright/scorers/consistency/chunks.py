"""Cuts a long source into chunks of whole sentences that overlap, for judges whose window is short.

A judge that knows its own window cuts better by itself, in tokens; this is for those that do not, and counts words.
"""

from __future__ import annotations

from evalwright.core.sentences import sentences, word_count


def chunks(text: str, most_words: int, overlap: int = 1) -> list[str]:
    """Stretches of up to `most_words` words, each beginning with the last `overlap` sentences of the one before.

    Every sentence is in a chunk, and a sentence with more words than `most_words` is one of its own. most_words 0 cuts nothing.
    """
    if most_words <= 0 or word_count(text) <= most_words:
        return [text]
    parts = sentences(text)
    sizes = [word_count(part) for part in parts]
    out: list[str] = []
    start = 0
    while True:
        end, total = start + 1, sizes[start]
        while end < len(parts) and total + sizes[end] <= most_words:
            total += sizes[end]
            end += 1
        out.append(" ".join(parts[start:end]))
        if end == len(parts):
            return out
        start = _next_start(sizes, start, end, most_words, overlap)


def _next_start(sizes: list[int], start: int, end: int, most_words: int, overlap: int) -> int:
    """Where the next chunk begins: as many sentences back as are wanted, fit beside the next one, and leave progress."""
    back = end
    while end - back < overlap and back - 1 > start and sum(sizes[back - 1 : end + 1]) <= most_words:
        back -= 1
    return back
