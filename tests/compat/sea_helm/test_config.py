"""Configuration files: merged, resolved, and bounded; names, sets and what sets leave out."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import evalwright.compat.sea_helm.config as sea_config
from compat.sea_helm.small_tree import TREE, golden, needs_tree, small_tree, write
from evalwright.compat.sea_helm.config import read_tree, root_of
from evalwright.compat.sea_helm.naming import chosen, expanded, listed, skipped_by
from evalwright.core.errors import ConfigurationError, TaskError, UnknownName


def test_files_are_merged_in_the_order_of_their_names_and_resolved_over_all_of_them(
    tmp_path: Path,
) -> None:
    small_tree(tmp_path)
    later = {"qa-mc": {"metadata": {"note": "x ${colours.competency} ${seed}"}}}
    write(tmp_path / "seahelm_tasks" / "zz" / "config.yaml", later)
    tree = read_tree(tmp_path)
    twin = tree.tasks["colours-logprobs"]
    assert twin["languages"] == tree.tasks["colours"]["languages"]
    assert tree.tasks["qa-mc"]["metadata"] == {"version": 2, "note": "x nlu 1234"}
    assert Path(tree.files["qa-mc"]).parent.name == "zz"
    assert tree.thinking == 500
    assert tree.groups == {"reading": ["qa-mc"]}
    assert root_of([tmp_path / "seahelm_tasks"]) == root_of([tmp_path])


def _chain(count: int, value: Any) -> dict[str, Any]:
    return {
        "colours": {
            "metadata": {f"m{n}": value(n) for n in range(count)} | {f"m{count}": "x"}
        }
    }


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (
            {
                "colours": {"metadata": "${qa-mc.metadata}"},
                "qa-mc": {"metadata": "${colours.metadata}"},
            },
            "refers to itself",
        ),
        ({"colours": {"metadata": "${colours}"}}, "refers to itself"),
        (
            {"colours": {"metadata": "${nowhere.at.all}"}},
            "${nowhere.at.all}, which is not in the folder's files",
        ),
        (
            {"colours": {"metadata": "${.relative}"}},
            "which is not in the folder's files",
        ),
        (
            {"colours": {"metadata": "${oc.env:HOME}"}},
            "which is not in the folder's files",
        ),
        (
            {"colours": {"metadata": {"x": "a ${qa-mc.languages}"}}},
            "inside of a text, and it is a mapping",
        ),
        (
            _chain(40, lambda n: [f"${{colours.metadata.m{n + 1}}}"] * 2),
            "larger than 2,000,000 values",
        ),
        (
            _chain(
                40,
                lambda n: (
                    f"${{colours.metadata.m{n + 1}}} ${{colours.metadata.m{n + 1}}}"
                ),
            ),
            "grows too long",
        ),
        (
            _chain(200, lambda n: [f"${{colours.metadata.m{n + 1}}}"]),
            "refers through too many others",
        ),
        (
            _chain(200, lambda n: [f"${{colours.metadata.m{n - 1}}}"] if n else "x"),
            "nested too deeply",
        ),
        ("colours: !!python/object/apply:os.system [id]", "tag"),
        ("colours: &a [*a]", "alias"),
        ("x: [\n", "this is not YAML"),
        (
            {"colours": {"languages": "${seed}"}},
            "`colours.languages` must be a mapping",
        ),
        ({"new": 3}, "`new` must be a mapping, not a whole number"),
        ({"new": {"competency": "nlu"}}, "the key `new.metric` is missing"),
        (
            {"colours": {"languages": {"id": {"prompt_template": {"preamble": [1]}}}}},
            "prompt_template.preamble` must be text, not a list",
        ),
    ],
)
def test_broken_and_hostile_files_are_one_sentence(
    tmp_path: Path, file: Any, said: str
) -> None:
    small_tree(tmp_path)
    write(tmp_path / "seahelm_tasks" / "zz" / "config.yaml", file)
    with pytest.raises(TaskError) as raised:
        read_tree(tmp_path)
    assert said in str(raised.value)
    assert "config.yaml" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_files_elsewhere_and_files_too_large_are_not_read(tmp_path: Path) -> None:
    outside = tmp_path / "outside.yaml"
    write(outside, {"colours": {"competency": "mine"}})
    folder = small_tree(tmp_path / "tree") / "seahelm_tasks" / "zz"
    folder.mkdir()
    (folder / "config.yaml").symlink_to(outside)
    with pytest.raises(TaskError, match="link out of its folder"):
        read_tree(tmp_path / "tree")
    (folder / "config.yaml").unlink()
    (folder / "config.yaml").write_bytes(b"#" * (9 << 20))
    with pytest.raises(TaskError, match="more than the"):
        read_tree(tmp_path / "tree")


def test_the_tree_is_kept_on_disk_for_one_state_of_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    secret = "sk-abcdef1234567890abcdef"
    root = small_tree(tmp_path / "tree")
    config = root / "seahelm_tasks" / "zz" / "config.yaml"
    write(config, {"colours": {"judge": {"judge_init_args": {"api_key": secret}}}})
    tree = read_tree(root)
    (kept,) = (tmp_path / "home" / "sea-helm").iterdir()
    assert secret not in kept.read_text()
    sea_config._read.cache_clear()
    monkeypatch.setattr(sea_config, "read_yaml", None)
    again = read_tree(root)
    assert again.sets == tree.sets and again.tasks["qa-mc"] == tree.tasks["qa-mc"]
    write(config, {"colours": {"competency": "other"}})
    with pytest.raises(TypeError):  # it is read again
        read_tree(root)


def test_one_folder_of_tasks_is_needed(tmp_path: Path) -> None:
    for given, said in (
        ([], "Name one folder"),
        ([tmp_path, tmp_path], "2 were given"),
        ([tmp_path / "x"], "does not exist"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            root_of(given)
    with pytest.raises(TaskError, match=r"has no config\.yaml"):
        read_tree(tmp_path)


def test_names_are_tasks_groups_and_sets_in_one_language_or_all(tmp_path: Path) -> None:
    tree = read_tree(small_tree(tmp_path))
    assert chosen(tree, "colours", ()).tasks == [("colours", "id"), ("colours", "tl")]
    assert chosen(tree, "reading/tl", ()).tasks == [("qa-mc", "tl")]
    # Members of a group come after the tasks that are named.
    assert chosen(tree, "both", ()).tasks == [
        ("colours", "id"),
        ("qa-mc", "id"),
        ("qa-mc", "tl"),
        ("colours", "tl"),
    ]
    assert chosen(tree, "everything", ()).tasks == [
        ("colours", "id"),
        ("colours-logprobs", "id"),
        ("qa-mc", "id"),
    ]
    assert chosen(tree, "both/tl", ["qa-mc"]).skipped == {"qa-mc": ["tl"]}
    for name, said in (
        ("colors", "Did you mean 'colours'"),
        ("colours/th", "It has: id, tl"),
        ("both/th", "It has: id, tl"),
    ):
        with pytest.raises(UnknownName, match=said):
            chosen(tree, name, ())
    kinds = defaultdict(list)
    for one in listed(tree):
        kinds[one.kind].append(one.name)
    assert kinds["task"] == ["colours", "colours-logprobs", "qa-mc"]
    assert kinds["task in a language"][:2] == ["colours/id", "colours/tl"]
    assert kinds["group"] == ["reading"]
    assert kinds["set"] == ["both", "everything", "holes"]


def test_names_of_a_set_that_do_not_exist_are_told_and_the_rest_is_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tree = read_tree(small_tree(tmp_path))
    with caplog.at_level(logging.WARNING):
        found = chosen(tree, "holes", ())
    assert found.tasks == [("colours", "id")]
    assert found.missing == {"colors-logprobs": ["id"], "nowhere-logprobs": ["tl"]}
    assert (
        "'colors-logprobs' (id), which the folder does not have; the closest: colours-logprobs"
        in caplog.text
    )


@needs_tree
def test_the_folder_of_sea_helm_is_read_whole() -> None:
    tree = read_tree(root_of([TREE]))
    assert len(set(tree.files.values())) == 113
    assert len(tree.tasks) == 487
    assert sum(len(tree.languages(task)) for task in tree.tasks) == 1394
    assert "${" not in json.dumps(tree.tasks)
    for line in golden("task"):
        config = dict(tree.tasks[line["task"]])
        languages = config.pop("languages")
        assert config == line["config"]
        assert languages[line["lang"]] == (
            line["language_config"] or languages[line["lang"]]
        )


@needs_tree
def test_sets_hold_the_published_tasks() -> None:
    tree = read_tree(root_of([TREE]))
    whole: dict[str, Any] = {}
    for line in golden("set"):
        name = line["set"]
        if tasks := line.get("tasks"):
            assert {key: set(own) for key, own in expanded(tree, name).items()} == {
                key: set(own) for key, own in tasks.items()
            }
            whole[name] = tasks
        found = chosen(tree, name, skipped_by(tree, line["base"]))
        valid = line["valid"]
        if valid is None:
            valid = {
                key: [one for one in own if one not in line["unknown"].get(key, ())]
                for key, own in whole[name].items()
            }
        run = defaultdict(set)
        for task, language in found.tasks:
            run[language].add(task)
        assert run == {key: set(own) for key, own in valid.items() if own}
        unknown = {(task, key) for key, own in line["unknown"].items() for task in own}
        assert {
            (task, key) for task, own in found.missing.items() for key in own
        } == unknown
