"""Conversations, ids and labels of SEA-HELM's tasks as its own loaders make them and as
Evalwright's, compared byte for byte.

    python benchmarks/sea_helm_prompts.py --tree SEA-HELM --peer .../bin/python

`--tree` is a checkout of SEA-HELM, `--peer` the Python of an environment with its datasets,
omegaconf, pandas and ujson. There this same file runs SEA-HELM's own loaders, unchanged, on every
task and language whose data lie in the tree: at 0 and at 5 shots, and as a base model is given
them. Where its own code fails, Evalwright must say that it does.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

FORMS = {"0 shots": (False, 0), "5 shots": (False, 5), "base": (True, None)}
"""Whether it is a base model's, and how many shots are forced on the task."""


def digest(values: Sequence[Any]) -> str:
    """One hash of many values."""
    whole = hashlib.sha256()
    for value in values:
        whole.update(
            json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
            + b"\n"
        )
    return whole.hexdigest()


def theirs(tree: Path) -> Iterator[dict[str, Any]]:
    """Each task, language and form by SEA-HELM's own code."""
    import glob
    from importlib import import_module

    os.chdir(tree)
    sys.path.insert(0, str(tree))
    omegaconf = import_module("omegaconf").OmegaConf
    jinja2 = import_module("jinja2")
    task_config = import_module("src.task_config").TaskConfig
    local = import_module(
        "src.dataloaders.seahelm_local_dataloader"
    ).SeaHelmLocalDataloader
    base_model = jinja2.Environment().from_string(
        Path("chat_templates/base_model.jinja").read_text()
    )
    files = glob.glob("seahelm_tasks/**/config.yaml", recursive=True)  # noqa: PTH207
    configs = omegaconf.merge(*(omegaconf.load(file) for file in files))
    omegaconf.resolve(configs)
    constants = omegaconf.to_object(omegaconf.load("seahelm_tasks/constants.yaml"))
    for name, config in configs.items():
        for language, here in config.languages.items():
            if not (here.filepath and Path(here.filepath).is_file()):
                continue
            for form, (base, shots) in FORMS.items():
                line = {"task": name, "language": language, "form": form}
                try:
                    given = omegaconf.create(omegaconf.to_container(config))
                    if shots is not None:
                        given.fewshot_num_examples = {"instruct": shots, "base": shots}
                    if shots and not here.get("example_filepath"):
                        continue
                    made = task_config(
                        given, name, language, 1234, base, True, constants
                    )
                    loader = made.get_dataloader_class()
                    assert (
                        issubclass(loader, local)
                        or "json" in Path(here.filepath).suffix
                    )
                    default = constants[
                        (
                            "base_num_in_context_examples"
                            if base
                            else "instruct_num_in_context_examples"
                        )
                    ]
                    rows = loader(
                        made,
                        default,
                        is_base_model=base,
                        run_base_path="",
                        num_workers=1,
                    )
                    rows.load_dataset()
                    conversations = rows.prepare_conversations_for_inference(1, True)
                    if base:
                        conversations = [
                            base_model.render(messages=one, add_generation_prompt=True)
                            for one in conversations
                        ]
                    columns = [
                        digest(
                            rows.dataset[key]
                            if key in rows.dataset.features
                            else [None] * len(conversations)
                        )
                        for key in ("id", "label")
                    ]
                    yield {
                        **line,
                        "rows": len(conversations),
                        "digest": digest(conversations),
                        "ids, labels": columns,
                    }
                except Exception as error:
                    yield {**line, "error": f"{type(error).__name__}: {error}"}


class Ours:
    """The same by Evalwright."""

    def __init__(self, tree: Path) -> None:
        from evalwright.compat.sea_helm.config import read_tree, root_of

        self.tree = read_tree(root_of([tree]))

    def line(self, task: str, language: str, form: str) -> dict[str, Any]:
        """As SEA-HELM's; an error where it says that SEA-HELM's code fails."""
        from evalwright.compat.sea_helm.compiling import (
            Shots,
            base_text,
            conversation,
            published_failure,
            sea_task,
            shots_of,
        )
        from evalwright.compat.sea_helm.naming import Options
        from evalwright.compat.sea_helm.rows import load_rows

        base, asked = FORMS[form]
        own = sea_task(
            self.tree, task, language, Options(scoring="published", base_model=base)
        )
        count = shots_of(own, asked, self.tree.constants)
        if failure := published_failure(own, self.tree, count):
            return {"error": failure}
        shots = Shots(own, count or 0)
        rows = load_rows(own)
        told = [conversation(own, row, shots(row)) for row in rows]
        conversations: list[Any] = [
            base_text(one) if base else [each.as_dict() for each in one] for one in told
        ]
        columns = [digest([row.get(key) for row in rows]) for key in ("id", "label")]
        return {
            "rows": len(conversations),
            "digest": digest(conversations),
            "ids, labels": columns,
        }


def main() -> int:
    """Print each form that differs, and how many are equal."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tree", type=Path, required=True)
    parser.add_argument("--peer", default=sys.executable)
    parser.add_argument("--theirs", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    tree = given.tree.resolve()
    if given.theirs:
        for line in theirs(tree):
            print("row:" + json.dumps(line), flush=True)
        return 0
    command = [given.peer, __file__, "--theirs", "--tree", str(tree)]
    ours = Ours(tree)
    pairs = set()
    counts = Counter[str]()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as peer:
        assert peer.stdout is not None
        for text in peer.stdout:
            if not text.startswith("row:"):
                continue
            found = json.loads(text.removeprefix("row:"))
            named = [found.pop(key) for key in ("task", "language", "form")]
            own = ours.line(*named)
            same = ("error" in own) == ("error" in found) and (
                "error" in own or own == found
            )
            pairs.add((named[0], named[1]))
            counts["equal" if same else "different"] += 1
            counts["both fail"] += same and "error" in own
            if not same:
                print(f"{'/'.join(named)}: SEA-HELM {found}, Evalwright {own}")
    twins = sum(name.endswith("-logprobs") for name, _ in pairs)
    print(
        f"{len(pairs) - twins} tasks in a language and {twins} twins: {counts['equal']}"
        f" forms equal ({counts['both fail']} that SEA-HELM's own code fails on),"
        f" {counts['different']} different"
    )
    return int(peer.returncode != 0 or counts["different"] > 0 or not pairs)


if __name__ == "__main__":
    sys.exit(main())
