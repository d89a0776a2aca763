"""Suite files and `run.json` as configurations: strict, with the place of every mistake."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError, UsageError
from evalwright.core.private import home_folder
from evalwright.evaluation.configuration import Configuration, ModelSpec
from evalwright.evaluation.configuration_file import (
    KEYS,
    read_configuration,
    read_settings,
)
from evalwright.evaluation.settings import Origin

pytestmark = pytest.mark.usefixtures("own_folder")

SUITE = """\
tasks: [factual, mine.yaml, exams.yaml:exams-law]
models:
  - demo/small
  - model: openai/gpt
    arguments: {temperature: 0.5, extra: {top_k: 3}}
    label: GPT
roles:
  judge: {model: scripted/echo}
limit: 10
seed: 3
name: both
out: results
home: store
format: chat
max_resident: 2
replace: true
"""


def written(text: str, name: str = "suite.yaml") -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_everything_that_can_be_said() -> None:
    path = written(SUITE)
    configuration = read_configuration(path, trust_file=str(path))
    assert configuration == Configuration(
        tasks=("factual", "mine.yaml", "exams.yaml:exams-law"),
        models=(
            ModelSpec("demo/small"),
            ModelSpec("openai/gpt", {"temperature": 0.5, "extra": {"top_k": 3}}, "GPT"),
        ),
        roles={"judge": ModelSpec("scripted/echo")},
        limit=10,
        seed=3,
        name="both",
        out="results",
        home="store",
        format="chat",
        max_resident=2,
        replace=True,
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[factual]", "mapping"),
        ("tasks: [factual]\nmodles: [x]", "suite.yaml:2.*|modles.*models"),
        ("tasks: [3]", r"suite.yaml:1.*'tasks.0' must be the name or file of a task"),
        ("tasks:\n  - factual\n  - {a: b}", r"suite.yaml:3.*tasks.1"),
        ("tasks:", "'tasks.0'"),
        ("models: [{modl: x}]", "modl.*model"),
        ("models: [{label: x}]", "'model' is missing"),
        ("models: [{model: 3}]", "a model's name"),
        (
            "models:\n  - model: a/b\n    arguments: [1]",
            "suite.yaml:3.*'models.0.arguments' must be a mapping",
        ),
        ("models: [[a]]", "'models.0'"),
        ("roles: [judge]", "mapping of roles"),
        ("roles: {judge: 3}", "'roles.judge'"),
        ("limit: ten", "'limit' must be a whole number"),
        ("limit: true", "'limit' must be a whole number"),
        ("limit: 1.5", "The limit must be a whole number"),
        ("seed: null", "'seed' must be a whole number"),
        ("name: 3", "'name' must be text"),
        ("replace: sometimes", "'replace' must be true or false"),
        ("format: chatty", "chatty.*'chat'"),
        ("tasks: [a\n", "suite.yaml"),
    ],
)
def test_a_mistake_is_a_sentence(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read_configuration(written(text))


NAMES = st.text(min_size=1, max_size=8)
SPECS = st.builds(
    ModelSpec,
    NAMES,
    st.dictionaries(
        st.sampled_from(("seed", "text", "thinking")),
        st.integers() | st.text(max_size=5),
        max_size=2,
    ),
    st.text(max_size=5),
)
CONFIGURATIONS = st.builds(
    Configuration,
    tasks=st.lists(NAMES, max_size=3).map(tuple),
    models=st.lists(SPECS, max_size=2).map(tuple),
    roles=st.dictionaries(NAMES, SPECS, max_size=2),
    limit=st.none() | st.integers(1, 100),
    seed=st.integers(0, 99),
    name=st.text("ab.-_ é", max_size=5).filter(
        lambda name: not name or name.strip(".- ")
    ),
    out=st.sampled_from(("runs", "a/b")),
    format=st.sampled_from(["auto", "chat", "text"]),
    max_resident=st.integers(1, 3),
)


@given(CONFIGURATIONS)
def test_what_is_recorded_can_be_fed_back(configuration: Configuration) -> None:
    path = written(
        json.dumps({"schema": 1, "configuration": configuration.as_dict()}),
        "runs/mine/run.json",
    )
    assert read_configuration(path) == configuration
    assert read_configuration(path.parent) == configuration


def test_flags_win_and_arguments_are_added() -> None:
    path = str(written(SUITE))
    settings = read_settings(
        path, {"limit": 2, "tasks": ("other",)}, {"temperature": 0}, trust_file=path
    )
    found = settings.configuration
    assert (found.limit, found.seed, found.tasks) == (2, 3, ("other",))
    assert settings.origins["limit"] == Origin("command line", "--limit")
    assert settings.origins["seed"].source == "file"
    assert settings.origins["seed"].location.startswith(f"{path}:")
    assert "hardware" not in settings.origins
    assert found.models[0].arguments == {"temperature": 0}
    assert found.models[1].arguments == {"temperature": 0, "extra": {"top_k": 3}}
    with pytest.raises(ConfigurationError, match="no model is named"):
        read_settings(None, {}, {"temperature": 0})
    assert read_settings(None, {}).configuration == Configuration()


def test_common_arguments_are_of_every_model_and_its_own_win() -> None:
    text = "common: {temperature: 1, extra: {top_k: 9, seed: 1}}\n" + SUITE
    path = written(text)
    configuration = read_configuration(path, trust_file=str(path))
    assert configuration.models[0].arguments == {
        "temperature": 1,
        "extra": {"top_k": 9, "seed": 1},
    }
    assert configuration.models[1].arguments == {
        "temperature": 0.5,
        "extra": {"top_k": 3, "seed": 1},
    }
    assert configuration.roles["judge"].arguments == {}
    with pytest.raises(UsageError, match=r"suite.yaml:1: 'common' must be a mapping"):
        read_configuration(written("common: 3"))


SUITES = """\
tasks: [factual]
models: [demo/small]
common: {temperature: 0, top_p: 1}
suites:
  test:
    limit: 3
  live:
    models: [demo/large]
    common: {temperature: 1}
"""


def test_a_suite_is_what_differs_from_the_rest() -> None:
    path = written(SUITES)
    test = read_configuration(path, "test")
    live = read_configuration(path, "live")
    assert (test.limit, [spec.model for spec in test.models]) == (3, ["demo/small"])
    assert (live.limit, [spec.model for spec in live.models]) == (None, ["demo/large"])
    assert live.models[0].arguments == {"temperature": 1, "top_p": 1}


@pytest.mark.parametrize(
    ("text", "suite", "says"),
    [
        (SUITES, None, "name one with --suite. It has: test, live"),
        (SUITES, "tset", "Unknown suite 'tset'. Did you mean 'test'"),
        ("tasks: [factual]", "test", "has no suites"),
        ("suites: [test]", "test", "suite.yaml:1: 'suites' must be a mapping"),
        ("suites:\n  test: 3", "test", "suite.yaml:2: 'suites.test' must be a mapping"),
        (
            "suites:\n  test:\n    limt: 3",
            "test",
            "Unknown key 'limt'. Did you mean 'limit'.*suite.yaml:3",
        ),
        (
            "limit: 1\nsuites:\n  test:\n    limit: x",
            "test",
            "suite.yaml:4: 'limit' must be a whole number",
        ),
    ],
)
def test_a_mistake_in_a_suite_is_a_sentence(
    text: str, suite: str | None, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        read_configuration(written(text), suite)


def test_home_is_as_given_or_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", "from-environment")
    assert home_folder("given") == Path("given")
    assert home_folder() == Path("from-environment")
    monkeypatch.setenv("EVALWRIGHT_HOME", "")
    assert home_folder() == Path(".evalwright")


def test_settings_of_tasks_and_their_files_lie_beside_the_suite(tmp_path: Path) -> None:
    suite = tmp_path / "suites" / "suite.yaml"
    suite.parent.mkdir()
    suite.write_text(
        "tasks: summary-faithfulness\n"
        "overrides:\n"
        "  dataset.path: [a.csv, b.csv]\n"
        "  prompt: {file: prompt.txt}\n"
        "  scorers.consistency.threshold: 0.6\n",
        encoding="utf-8",
    )
    configuration = read_configuration(suite)
    assert configuration.overrides == {
        "dataset.path": [str(suite.parent / "a.csv"), str(suite.parent / "b.csv")],
        "prompt": {"file": str(suite.parent / "prompt.txt")},
        "scorers.consistency.threshold": 0.6,
    }
    both = read_settings(
        str(suite), {"overrides": {"prompt": {"system": "Be brief."}, "version": 2}}
    ).configuration.overrides
    assert both == {
        "dataset": {"path": configuration.overrides["dataset.path"]},
        "prompt": {"file": str(suite.parent / "prompt.txt"), "system": "Be brief."},
        "scorers": {"consistency": {"threshold": 0.6}},
        "version": 2,
    }
    recorded = tmp_path / "run.json"
    recorded.write_text(
        json.dumps({"configuration": configuration.as_dict()}), encoding="utf-8"
    )
    assert read_configuration(recorded).overrides == configuration.overrides
    assert "overrides" not in Configuration().as_dict()
    suite.write_text("overrides: [a]\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="'overrides' must be a mapping"):
        read_configuration(suite)


@pytest.mark.parametrize(
    ("text", "roles", "panel"),
    [
        ("judge: demo/large", {"judge": ModelSpec("demo/large")}, {}),
        (
            "judge: {model: demo/large, arguments: {temperature: 0}, label: J}",
            {"judge": ModelSpec("demo/large", {"temperature": 0}, "J")},
            {},
        ),
        (
            "judge: [demo/large, demo/small]",
            {"judge": ModelSpec("demo/large"), "judge-2": ModelSpec("demo/small")},
            {"judges": ["judge", "judge-2"]},
        ),
        (
            "judge: demo/large\nroles: {gpt: demo/small}",
            {"judge": ModelSpec("demo/large"), "gpt": ModelSpec("demo/small")},
            {},
        ),
    ],
)
def test_a_judge_means_what_the_option_means(
    text: str, roles: dict[str, ModelSpec], panel: dict[str, list[str]]
) -> None:
    configuration = read_configuration(written(text))
    assert configuration.roles == roles
    assert configuration.unsure == {"scorer": "judge-correct", **panel}
    Path("run.json").write_text(json.dumps(configuration.as_dict()))
    assert read_configuration(Path("run.json")).roles == roles


def test_a_judge_in_a_suite_of_a_file_and_one_on_the_command_line() -> None:
    path = written("judge: demo/large\nsuites: {a: {judge: demo/small}, b: {}}")
    for suite, model in (("a", "demo/small"), ("b", "demo/large")):
        configuration = read_configuration(path, suite)
        assert configuration.roles == {"judge": ModelSpec(model)}
    flags = {"roles": {"judge": ModelSpec("scripted/echo")}}
    address = "judge: openai/http://10.0.0.7/v1#one"
    settings = read_settings(str(written(address)), flags)
    assert settings.configuration.roles == flags["roles"]
    with pytest.raises(ConfigurationError, match=r"judge.0: .*10\.0\.0\.7"):
        read_configuration(written(address))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "judge: demo/a\nroles: {judge: demo/b}",
            "suite.yaml:1: 'judge' and 'roles' both",
        ),
        ("judge: 7", "a model's name or a mapping with 'model'"),
        ("judge: {modle: demo/a}", "Did you mean 'model'"),
    ],
)
def test_a_judge_that_cannot_be_read(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read_configuration(written(text))


def test_the_page_of_suites_lists_all_keys() -> None:
    page = Path(__file__).parents[2].joinpath("docs", "suites.md").read_text()
    listed = set(re.findall(r"`(\w+)`", page.partition("## Keys")[2]))
    assert set(KEYS) - listed == set()
