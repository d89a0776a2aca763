"""`tools` of a task file: its forms, what it may not be, and what needs the user's permission."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright import load_task, tool
from evalwright.core.errors import EvalwrightError, TaskError, UsageError
from evalwright.core.tasks import Task
from evalwright.evaluation.resolving import run_identity
from evalwright.tasks.loading import task_from_definition

LOOK = {
    "name": "look",
    "description": "Look.",
    "parameters": {"type": "object", "properties": {}},
}
ROWS = [
    {
        "input": "Where?",
        "target": "here",
        "tools": [LOOK],
        "as_text": json.dumps([LOOK]),
        "results": [{"name": "look", "result": "here"}],
    }
]
PYTHON = '''
from pathlib import Path
from evalwright import tool

Path("was-run").touch()

@tool
def look(place: str = "here") -> str:
    """Look around."""
    return place

@tool
def go(place: str) -> str:
    """Go."""
    return place
'''
TASK: dict[str, Any] = {
    "task": "looking",
    "dataset": {"rows": ROWS},
    "prompt": {"user": "{{ input }}"},
    "scorers": ["exact-match"],
}


def write(folder: Path, **changes: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "tools.py").write_text(PYTHON)
    (folder / "tools.json").write_text(json.dumps([LOOK]))
    path = folder / "task.yaml"
    path.write_text(yaml.safe_dump({**TASK, **changes}))
    return path


def offered(task: Task) -> list[str]:
    strategy: Any = task.strategy
    return [definition.name for definition in strategy.tools.checked(task.samples[0])]


@pytest.fixture(autouse=True)
def folder(own_folder: Path) -> Path:
    return own_folder / "theirs"


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        ("{{ tools }}", ["look"]),
        (["{{ tools }}"], ["look"]),
        ([LOOK], ["look"]),
        (LOOK, ["look"]),
        ([{"type": "function", "function": LOOK}], ["look"]),
        ("tools.json", ["look"]),
        (["tools.json", {"name": "go"}], ["look", "go"]),
        ("{{ as_text }}", ["look"]),
    ],
    ids=str,
)
def test_definitions_are_data(folder: Path, tools: Any, names: list[str]) -> None:
    task = load_task(write(folder, tools=tools))
    assert offered(task) == names
    assert "chat" in task.strategy.needs
    assert not Path("was-run").exists()
    recorded = json.dumps(task.definition["tools"])
    assert "look" in recorded or "{{" in recorded


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        ("tools.py", ["look", "go"]),
        (["tools.py:go"], ["go"]),
        (["tools.py:go", "{{ tools }}"], ["go", "look"]),
    ],
    ids=str,
)
def test_python_needs_permission(folder: Path, tools: Any, names: list[str]) -> None:
    path = write(folder, tools=tools)
    with pytest.raises(
        TaskError,
        match=r"task.yaml:\d+: this runs the Python file .*tools.py', which needs your permission.*--trust 'theirs'",
    ):
        load_task(path)
    assert not Path("was-run").exists()
    with pytest.raises(TaskError, match="--trust"):
        load_task(path, trust=["other"])
    task = load_task(path, trust=["theirs"])
    assert offered(task) == names
    assert (
        len(
            task.definition["tools"][0]["sha256"]
            if isinstance(tools, list)
            else task.definition["tools"]["sha256"]
        )
        == 64
    )


def test_an_override_of_the_users_own_needs_no_permission(folder: Path) -> None:
    path = write(folder)
    task = load_task(path, overrides={"tools": ["theirs/tools.py"]})
    assert offered(task) == ["look", "go"]


def test_python_outside_of_the_folder_is_not_run(folder: Path) -> None:
    path = write(folder, tools="../elsewhere/tools.py")
    with pytest.raises(TaskError, match="--trust"):
        load_task(path)


@pytest.mark.parametrize(
    ("server", "sentence"),
    [
        ({"mcp": ["sh", "-c", "touch was-run"]}, "this starts the MCP server"),
        (
            {"mcp": "sh -c 'touch was-run'", "env": ["OPENAI_API_KEY"]},
            "with OPENAI_API_KEY, which needs",
        ),
        (
            {
                "mcp": ["/tmp/theirs/uvx", "server"],
                "env": {"K": "${OPENAI_API_KEY}", "PATH": "/tmp/theirs"},
            },
            "'/tmp/theirs/uvx server' with K (your OPENAI_API_KEY), PATH, which needs",
        ),
        (
            {
                "mcp": "https://tools.example.com/mcp",
                "headers": {"Authorization": "Bearer ${OPENAI_API_KEY}"},
            },
            "with Authorization (your OPENAI_API_KEY), which needs",
        ),
        (
            {"mcp": "https://tools.example.com/mcp"},
            "sends what models call to the MCP server 'https://tools.example.com/mcp'",
        ),
    ],
    ids=str,
)
def test_servers_need_permission(folder: Path, server: Any, sentence: str) -> None:
    with pytest.raises(TaskError, match="--trust 'theirs'") as caught:
        load_task(write(folder, tools=[server]))
    assert sentence in str(caught.value)
    assert not Path("was-run").exists()


def test_a_server_is_not_started_by_loading(folder: Path) -> None:
    pytest.importorskip("mcp")
    path = write(folder, tools=[{"mcp": "touch was-run"}], strategy="tool-loop")
    task = load_task(path, trust=[folder])
    assert not Path("was-run").exists()
    assert task.definition["tools"] == [
        {"mcp": ["touch", "was-run"], "session": "sample"}
    ]


def test_without_the_extra_the_command_that_installs_it_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(UsageError, match=r"pip install 'evalwright\[mcp\]'"):
        load_task(write(folder, tools=[{"mcp": "anything"}]), trust=[folder])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"tools": []}, "`tools` is empty"),
        ({"tools": 3}, "A tool is a definition"),
        ({"tools": ["look"]}, "A tool is a definition"),
        ({"tools": [{"name": "two words"}]}, "letters, digits"),
        ({"tools": [{"name": "x", "parameters": {"type": "array"}}]}, "type 'object'"),
        ({"tools": [LOOK, LOOK]}, "Two tools have the name 'look'"),
        ({"tools": [LOOK, "{{ tools }}"]}, "row 1.*Two tools have the name 'look'"),
        ({"tools": "{{ input }}"}, "row 1.*neither a list of definitions nor JSON"),
        ({"tools": "{{ tool }}"}, "no column 'tool'; did you mean 'tools'"),
        ({"tools": "missing.json"}, "cannot be read"),
        ({"tools": "../../secret.json"}, "outside of this file's folder"),
        ({"tools": [{"mcp": "a", "sesion": "run"}]}, "Did you mean 'session'"),
        ({"answer": {"tool_choice": "auto"}}, "needs `tools`"),
        (
            {"tools": [LOOK], "answer": {"tool_choice": "loook"}},
            "none of: auto, none, required, look",
        ),
        ({"tools": [LOOK], "answer": {"parallel_tool_calls": "yes"}}, "true or false"),
        ({"tools": [LOOK], "prompt": {"user": "x", "format": "text"}}, "chat form"),
        (
            {
                "tools": [LOOK],
                "answer": {"mode": "perplexity"},
                "scorers": ["perplexity"],
            },
            "mode perplexity",
        ),
        (
            {"tools": [LOOK], "prompt": {"user": ["a", "b"]}},
            "'conversation' offers no tools: use 'tool-loop'",
        ),
        (
            {
                "tools": [LOOK],
                "prompt": {"user": ["a", "b"]},
                "strategy": "single-draw",
            },
            "use 'tool-loop'",
        ),
        ({"tools": [LOOK], "strategy": "chain-of-thought"}, "offers no tools"),
        ({"strategy": "tool-loop"}, "needs tools"),
        (
            {
                "tools": [LOOK],
                "strategy": {"name": "tool-loop", "results": "{{ input }}"},
            },
            "row 1.*not JSON",
        ),
        (
            {"tools": [LOOK], "strategy": {"name": "tool-loop", "max_step": 3}},
            "max_steps",
        ),
    ],
    ids=str,
)
def test_a_mistake_is_said_with_its_place(
    folder: Path, changes: Any, sentence: str
) -> None:
    with pytest.raises(EvalwrightError, match=sentence):
        load_task(write(folder, **changes))


def test_a_task_in_python_has_functions() -> None:
    @tool
    def look() -> str:
        return "here"

    definition = {
        **TASK,
        "tools": [look],
        "strategy": {"name": "tool-loop", "results": "{{ results }}"},
    }
    task = task_from_definition(definition)
    assert offered(task) == ["look"]
    assert task.definition["tools"] == [look.definition.as_dict()]


def test_columns_may_be_tools_in_a_file_of_several_tasks(folder: Path) -> None:
    path = write(
        folder,
        task="looking-{{ n }}",
        for_each={"n": [1, 2]},
        tools="{{ tools }}",
        strategy={
            "name": "tool-loop",
            "max_steps": "{{ n }}",
            "results": "{{ results }}",
        },
    )
    task = load_task(f"{path}:looking-2")
    assert offered(task) == ["look"]
    assert task.definition["strategy"]["options"]["max_steps"] == 2


def test_tasks_without_tools_keep_their_hashes() -> None:
    """Hashes of a version that knew no tools."""
    task = load_task("factual-closed-book")
    assert task.samples.content_hash == "c09c46b95c00e73639fafe50f8948fcc"
    assert (
        run_identity("model", {}, [task], None, 0) == "2c4cd2c68c56fa4d61e4c1ffaab8ed79"
    )
