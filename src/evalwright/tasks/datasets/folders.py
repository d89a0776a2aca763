"""A folder in place of a data file: a data set saved to disk, or the files of one split."""

from __future__ import annotations

import re
from pathlib import Path

from evalwright.core.private import no_file
from evalwright.tasks.datasets.formats import SUFFIXES
from evalwright.tasks.yaml_files import shown_path

MOST_NAMED = 5
"""How many files of a folder a message names."""

_SHARD = re.compile(r"(?P<split>.+)-\d{5}-of-\d{5}")
"""The name of one of the files into which the library `datasets` divides a split."""


def is_saved_dataset(folder: Path) -> bool:
    """Tell whether `datasets.Dataset.save_to_disk` wrote this folder."""
    names = ("state.json", "dataset_info.json")
    return all((folder / name).is_file() for name in names)


def paths_in_folder(folder: Path) -> list[Path]:
    """Return the files of the one split in a folder; a saved data set is the folder itself.

    Raises:
        ValueError: it has none, or several; the message is the end of a sentence on the folder.
    """
    if is_saved_dataset(folder):
        return [folder]
    children = sorted(child for child in folder.iterdir() if child.name[0] != ".")
    saved = [child for child in children if is_saved_dataset(child)]
    files_by_split: dict[str, list[Path]] = {}
    for child in children:
        if child.is_file() and child.suffix.lower() in SUFFIXES:
            if child.name in ("dataset_dict.json", "dataset_infos.json"):
                continue
            shard = _SHARD.fullmatch(child.stem)
            split = f"{shard['split'] if shard else child.stem}{child.suffix}"
            files_by_split.setdefault(split, []).append(child)
    if len(saved) == 1 and not files_by_split:
        return saved
    if len(files_by_split) == 1 and not saved:
        (files,) = files_by_split.values()
        return files
    raise ValueError(_advise(folder, [*saved, *_patterns(files_by_split)]))


def _patterns(files_by_split: dict[str, list[Path]]) -> list[Path]:
    """Return a path for each split: its file, or a pattern for the files of it."""
    return [
        files[0]
        if len(files) == 1
        else files[0].with_name(f"{Path(split).stem}-*{files[0].suffix}")
        for split, files in files_by_split.items()
    ]


def _advise(folder: Path, candidates: list[Path]) -> str:
    problem = no_file(folder)
    if not candidates:
        deeper = [
            child
            for child in sorted(folder.glob("*/*"))
            if child.suffix.lower() in SUFFIXES and child.is_file()
        ]
        if not deeper:
            return f"{problem}, and has no data files ({', '.join(SUFFIXES)}) in it"
        return (
            f"{problem}. Name one with data, such as '{shown_path(deeper[0].parent)}'"
        )
    # Questions are in the split that a task calls test; the likeliest is named first.
    candidates = sorted(candidates, key=lambda path: not path.name.startswith("test"))
    listed = ", ".join(f"'{shown_path(path)}'" for path in candidates[:MOST_NAMED])
    n_more = len(candidates) - MOST_NAMED
    more = f" and {n_more} more" if n_more > 0 else ""
    return f"{problem}. Name the part of it that you mean: {listed}{more}"
