"""Unsure answers that are identical in two runs: whatever they score, it cancels out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b

import numpy as np

from evalwright.runs.measures import Matrix
from evalwright.runs.reader import Run
from evalwright.runs.recorded_answers import whole_answer
from evalwright.runs.scores import hashed

MAX_COMPARED_ITEMS = 200_000
"""Most items that are unsure in both runs for which their answers are compared."""

_DIGEST_BYTES = 16


def without_same_answers(
    runs: tuple[Run, Run], matrices: Sequence[Matrix]
) -> list[Matrix]:
    """Mark the scores of identical answers as no longer unsure.

    Records are read only if an item is unsure in both runs, with the same score.
    """
    candidates = dict[str, set[int]]()
    for matrix in matrices:
        if matrix.scores is None:
            keys = _unsure_in_both(matrix)
            if 0 < len(keys) <= MAX_COMPARED_ITEMS:
                candidates[matrix.measure.task] = keys

    if not candidates:
        return list(matrices)
    digests = [_answer_digests(run, candidates) for run in runs]

    settled = []
    for matrix in matrices:
        task = matrix.measure.task
        same = [
            key
            for key in candidates.get(task, ())
            if (task, key) in digests[0]
            and digests[0][task, key] == digests[1].get((task, key))
        ]
        is_same = np.isin(matrix.keys, np.array(same, matrix.keys.dtype))
        settled.append(
            replace(matrix, unsure=matrix.unsure & ~is_same) if same else matrix
        )
    return settled


def _unsure_in_both(matrix: Matrix) -> set[int]:
    """Return the keys of the items that are unsure in both runs, with the same score."""
    in_both = (
        matrix.unsure[0] & matrix.unsure[1] & (matrix.values[0] == matrix.values[1])
    )
    return set(matrix.keys[in_both].tolist())


def _answer_digests(
    run: Run, keys_by_task: Mapping[str, Collection[int]]
) -> dict[tuple[str, int], bytes]:
    """Compute a digest of the answers to each item, by task and key."""
    hashes = dict[tuple[str, int], blake2b]()
    for row in () if run.has_published_scores else run.rows():
        keys = keys_by_task.get(row["task"])
        if keys is None:
            continue
        key = hashed(row["id"])
        if key not in keys:
            continue
        answer = whole_answer(row)
        if not answer:
            continue
        digest = hashes.setdefault(
            (row["task"], key), blake2b(digest_size=_DIGEST_BYTES)
        )
        text = answer.strip()
        digest.update(
            f"{row.get('draw', 0)} {len(text)} {text}".encode("utf-8", "surrogatepass")
        )
    return {task_key: digest.digest() for task_key, digest in hashes.items()}
