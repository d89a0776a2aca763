"""Whether two hashes of a task's data can be compared.

A run that was made here has the hash of its rows as they were read; an imported one that of the
samples in its records. Such hashes differ for the same data, and say nothing about it.
"""

from __future__ import annotations


def data_differ(hash_a: str, hash_b: str) -> bool:
    """Whether two content hashes show that the data are not the same.

    Args:
        hash_a: the `content_hash` of a task in a record, or of its samples.
        hash_b: another one.

    Returns:
        False also where one is of another kind: kinds have different lengths.
    """
    return len(hash_a) == len(hash_b) and hash_a != hash_b
