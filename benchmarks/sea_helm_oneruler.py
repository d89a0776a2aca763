"""The instances of SEA-HELM's generated long-context tasks, made by its own code and by
Evalwright's, compared byte for byte.

    python benchmarks/sea_helm_oneruler.py --tree SEA-HELM --peer .../bin/python --rows 3

`--tree` is a checkout of SEA-HELM, `--peer` the Python of an environment with its datasets,
omegaconf, pandas, transformers and wonderwords. There this same file runs SEA-HELM's loaders,
unchanged but for the tokenizer (one token for each code point, with the `batch_encode_plus` that
transformers 5 took away) and for the 32 processes that they would start for each task.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = "seahelm_tasks/long_context/oneruler"


class CodePoints:
    """What SEA-HELM's loaders ask of a tokenizer."""

    def __call__(self, text: str, **options: Any) -> dict[str, list[int]]:
        return {"input_ids": [ord(one) for one in text], "length": [len(text)]}

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids))

    def batch_encode_plus(
        self, texts: Sequence[str], **options: Any
    ) -> dict[str, list[int]]:
        return {"length": [len(text) for text in texts]}


def digest(label: Sequence[str], conversation: Sequence[Mapping[str, str]]) -> str:
    """One row: what is right, and the whole prompt."""
    text = json.dumps(
        [list(label), [dict(one) for one in conversation]], ensure_ascii=False
    )
    return hashlib.sha256(text.encode()).hexdigest()


def theirs(tree: Path, rows: int) -> Iterator[dict[str, Any]]:
    """Each task and language by SEA-HELM's own code, with its resolved configuration."""
    from importlib import import_module
    from unittest import mock

    os.chdir(tree)
    sys.path.insert(0, str(tree))
    datasets, transformers, omegaconf = map(
        import_module, ("datasets", "transformers", "omegaconf")
    )
    task_config = import_module("src.task_config").TaskConfig
    load = omegaconf.OmegaConf.load
    merge = omegaconf.OmegaConf.merge
    configs = merge(
        *(load(f"{FOLDER}/{family}/config.yaml") for family in ("niah", "cwe"))
    )
    omegaconf.OmegaConf.resolve(configs)
    serial = datasets.Dataset.map
    with (
        mock.patch.object(
            transformers.AutoTokenizer, "from_pretrained", lambda name: CodePoints()
        ),
        mock.patch.object(
            datasets.Dataset,
            "map",
            lambda self, function, num_proc=None: serial(self, function),
        ),
    ):
        for name, config in configs.items():
            loader = getattr(
                import_module(
                    config.dataloader_file.removesuffix(".py").replace("/", ".")
                ),
                config.dataloader_class,
            )
            for language in config.languages:
                made = loader(
                    task_config(config, name, language, 1234),
                    0,
                    run_base_path="",
                    num_workers=1,
                )
                made.load_dataset(limit=rows)
                conversations = made.prepare_conversations_for_inference(1)
                yield {
                    "task": name,
                    "language": language,
                    "config": omegaconf.OmegaConf.to_container(config),
                    "rows": [
                        digest(label, one)
                        for label, one in zip(
                            made.dataset["label"], conversations, strict=True
                        )
                    ],
                }


def ours(tree: Path, found: Mapping[str, Any], rows: int) -> list[str]:
    """The same rows by Evalwright."""
    from evalwright.compat.sea_helm.config import SeaTask
    from evalwright.compat.sea_helm.oneruler import oneruler_rows

    task = SeaTask(found["task"], found["language"], found["config"], tree)
    preamble = task.template["preamble"]
    template = task.template["task_template"]
    return [
        digest(
            row["label"],
            [
                {
                    "role": "user",
                    "content": (
                        f"{preamble}\n\n{template.format(**row['prompts'][0])}".strip()
                    ),
                }
            ],
        )
        for row in oneruler_rows(task, "", rows)
    ]


def main() -> int:
    """Print each pair that differs, and how many are equal."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tree", type=Path, required=True)
    parser.add_argument("--peer", default=sys.executable)
    parser.add_argument("--rows", type=int, default=3)
    parser.add_argument("--theirs", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    tree = given.tree.resolve()
    if given.theirs:
        for made in theirs(tree, given.rows):
            print("row:" + json.dumps(made), flush=True)
        return 0
    command = [
        given.peer,
        __file__,
        "--theirs",
        "--tree",
        str(tree),
        "--rows",
        str(given.rows),
    ]
    equal = pairs = 0
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as peer:
        assert peer.stdout is not None
        for line in peer.stdout:
            if line.startswith("row:"):
                found = json.loads(line.removeprefix("row:"))
                same = ours(tree, found, given.rows) == found["rows"]
                pairs = pairs + 1
                equal = equal + same
                if not same:
                    print(f"{found['task']} {found['language']}: different")
    print(f"{equal} of {pairs} pairs equal, {given.rows} rows of each")
    return int(peer.returncode != 0 or equal != pairs or not pairs)


if __name__ == "__main__":
    sys.exit(main())
