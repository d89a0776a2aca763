"""What an honest user meets: nothing is passed over in silence, and every refusal says what to
type.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.typed import typed

KEY = "sk-0123456789abcdef"


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def test_an_address_in_a_dot_env_file_is_said() -> None:
    Path(".env").write_text(
        f"OPENAI_API_KEY={KEY}\nOPENAI_BASE_URL=http://localhost:1/v1\n"
    )
    done = typed("models", "check", "openai/gpt-4o-mini")
    assert (
        done.code == 2 and "Export OPENAI_BASE_URL" in done.err and KEY not in done.text
    )
    named = ("-M", "base_url=http://localhost:1/v1")
    assert typed("models", "check", "openai/gpt-4o-mini", *named).code == 0


def test_a_gateway_says_which_key_to_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    command = (
        "models",
        "check",
        "openai/m",
        "-M",
        "base_url=https://gateway.example/v1",
    )
    done = typed(*command)
    assert done.code == 2 and "-M api_key_env=OPENAI_API_KEY" in done.err
    assert typed(*command, "-M", "api_key_env=OPENAI_API_KEY").code == 0


def test_a_trusted_folder_reads_its_own_files() -> None:
    Path("lm").mkdir()
    Path("lm/rows.jsonl").write_text(
        json.dumps({"question": "1 + 1?", "answer": "2"}) + "\n"
    )
    Path("lm/sum.yaml").write_text(
        "task: sum\ndataset_path: json\ndataset_kwargs: {data_files: {test: rows.jsonl}}\ntest_split: test\n"
        "output_type: generate_until\ndoc_to_text: '{{question}}'\ndoc_to_target: '{{answer}}'\n"
        "metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]\n"
    )
    command = ("tasks", "preview", "lm-eval:sum", "--task-root", "lm")
    for more in ((), ("--trust", "lm")):
        done = typed(*command, *more)
        assert done.code == 0 and "1 + 1?" in done.out, done.text


def test_a_linked_folder_of_runs_says_where_it_leads() -> None:
    Path("work").mkdir()
    Path("scratch").mkdir()
    Path("work/runs").symlink_to(Path("scratch").resolve())
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir("work")
        done = typed(
            "run",
            "factual-closed-book",
            "--model",
            "demo/small",
            "--limit",
            "1",
            "--quiet",
        )
    assert done.code == 2 and f"--out '{Path('scratch').resolve()}'" in done.err


def test_a_suite_file_with_a_local_server_needs_no_permission_unless_a_key_would_go_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("s.yaml").write_text(
        "tasks: [factual-closed-book]\nlimit: 1\nmodels: [{model: 'vllm/http://localhost:1/v1#m', "
        "arguments: {max_attempts: 1}}]\n"
    )
    command = ("run", "--config", "s.yaml", "--quiet")
    assert typed(*command).code == 1  # it was sent, and nobody answered
    monkeypatch.setenv("VLLM_API_KEY", KEY)
    assert typed(*command).code == 2
