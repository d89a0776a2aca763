"""Files of articles of any number and length, made of those that come with the package."""

from __future__ import annotations

import csv
from pathlib import Path

from evalwright.tasks.loading import load_task

LONG = 15_000


def write_articles(path: Path, n: int, n_long: int) -> None:
    """A CSV of n articles with category and text_type, all different; the first n_long have
    15,000 words.
    """
    samples = list(load_task("summary-faithfulness").samples)
    full = [sample for sample in samples if not sample.metadata.get("expects")]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["article_id", "text", "dataset", "category", "text_type"])
        for number in range(n):
            sample = full[number % len(full)]
            text = f"{sample.passages[0].text} It is entry {number} of the register."
            if number < n_long:
                text = _long(text, [sample.passages[0].text for sample in full])
            metadata = sample.metadata
            writer.writerow(
                [
                    f"a{number:04}",
                    text,
                    "generated",
                    metadata["category"],
                    metadata["text_type"],
                ]
            )


def _long(text: str, others: list[str]) -> str:
    words = text.split()
    position = 0
    while len(words) < LONG:
        words += others[position % len(others)].split()
        position += 1
    return " ".join(words[:LONG])
