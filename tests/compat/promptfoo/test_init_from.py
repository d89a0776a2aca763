"""promptfoo's configurations: what becomes of each form, a run end to end, and hostile files."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright.compat.promptfoo.assertions import assertion_of_cell
from evalwright.compat.promptfoo.config_files import ConfigFolder, Notes
from evalwright.compat.promptfoo.patterns import to_python
from evalwright.compat.promptfoo.promptfoo_command import ConvertedSuite, convert
from evalwright.compat.promptfoo.providers import convert_providers
from evalwright.core.errors import EvalwrightError
from support.command import Done
from support.typed import typed

CONFIG = "promptfooconfig.yaml"


def write(text: str, name: str = CONFIG) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def converted(text: str) -> ConvertedSuite:
    return convert(write(text))


def rows_of(suite: ConvertedSuite) -> list[dict[str, Any]]:
    return [json.loads(line) for line in suite.files["promptfoo.jsonl"].splitlines()]


def suite_of(suite: ConvertedSuite) -> dict[str, Any]:
    settings: dict[str, Any] = yaml.safe_load(suite.files["suite.yaml"])
    return settings


def init(*arguments: str) -> Done:
    return typed("init", "--from", CONFIG, *arguments)


GRID = """\
# yaml-language-server: $schema=https://promptfoo.dev/config-schema.json
description: Greetings in several languages
prompts:
  - 'Say "{{ phrase }}" in {{language}}.'
  - file://prompts/several.txt
  - id: file://prompts/chat.json
    label: Chat with a role
providers:
  - echo
defaultTest:
  vars:
    language: Dutch
  assert:
    - type: latency
      threshold: 60000
tests:
  - description: spread out
    vars:
      phrase: [good day, good night]
      language: French
    assert:
      - type: icontains
        value: '{{language}}'
      - type: not-contains
        value: as an AI
  - vars: {phrase: 'hello {{who}}', who: world}
    threshold: 0.5
    metadata: {kind: composed}
    assert:
      - {type: contains, value: hello world, weight: 2}
      - {type: equals, value: nothing of the kind}
  - file://tests/more.csv
"""


def grid() -> None:
    write(GRID)
    write(
        "Translate into {{language}}:\n{{phrase}}\n\n---\n\nShort: {{phrase}} ({{language}})\n",
        "prompts/several.txt",
    )
    chat = [
        {"role": "system", "content": "You speak {{language}}."},
        {"role": "user", "content": "{{phrase}}"},
    ]
    write(json.dumps(chat), "prompts/chat.json")
    write(
        "phrase,language,__expected1,__expected2,__description,__metadata:kind\n"
        'thanks,Thai,"contains-any: thanks, ""danke, or""","regex: Thai",of a table,table\n'
        "sorry,Welsh,sorry,,,\n",
        "tests/more.csv",
    )


def test_a_grid_runs_end_to_end() -> None:
    grid()
    done = init()
    assert done.code == 0, done.text
    assert done.out.splitlines() == [
        "Written: suite.yaml",
        "Written: promptfoo.yaml",
        "Written: promptfoo.jsonl",
        "Written: promptfoo-prompts/prompt-1.txt",
        "Written: promptfoo-prompts/several.txt",
        "Written: promptfoo-prompts/several-2.txt",
        "Written: promptfoo-prompts/Chat-with-a-role.txt",
        "Next: evalwright run --config suite.yaml",
    ]
    assert done.err == ""
    assert "5 samples read, ids unique" in typed("tasks", "check", "promptfoo.yaml").out
    assert typed("run", "--config", "suite.yaml", "--name", "grid", "--quiet").code == 0

    labels: dict[str, dict[str, str]] = {}
    for folder in sorted(Path("runs").iterdir()):
        records = map(json.loads, (folder / "samples.jsonl").read_text().splitlines())
        labels[folder.name] = {
            record["id"]: record["scores"]["assertions"]["label"] for record in records
        }
    passed, failed = "passed", "failed"
    assert labels["grid-prompt-1"] == {
        "test-1.1": passed,
        "test-1.2": passed,
        "test-2": passed,
        "test-3": passed,
        "test-4": failed,  # the answer is not only the word
    }
    # The echo of a chat is its last message, which has no language in it.
    assert labels["grid-Chat-with-a-role"]["test-1.1"] == failed
    assert labels["grid-Chat-with-a-role"]["test-4"] == passed

    chats = Path("runs/grid-Chat-with-a-role/samples.jsonl").read_text()
    assert "You speak French." in chats
    again = init()
    assert again.out.count("Unchanged") == 7


def test_what_is_written_can_be_read_by_people() -> None:
    grid()
    suite = convert(Path(CONFIG))
    assert suite_of(suite) == {
        "name": "promptfoo",
        "tasks": ["promptfoo.yaml"],
        "models": ["scripted/echo"],
        "prompts": [
            "promptfoo-prompts/prompt-1.txt",
            "promptfoo-prompts/several.txt",
            "promptfoo-prompts/several-2.txt",
            {
                "name": "Chat-with-a-role",
                "system": "You speak {{ vars.language }}.",
                "file": "promptfoo-prompts/Chat-with-a-role.txt",
            },
        ],
    }
    assert suite.files["promptfoo-prompts/prompt-1.txt"] == (
        'Say "{{ vars.phrase }}" in {{ vars.language }}.\n'
    )
    rows = rows_of(suite)
    assert rows[2] == {
        "id": "test-2",
        "input": "phrase: hello world\nlanguage: Dutch",
        "description": "",
        "vars": {"language": "Dutch", "phrase": "hello world", "who": "world"},
        "assert": [
            {"type": "latency", "threshold": 60000},
            {"type": "contains", "weight": 2, "value": "hello world"},
            {"type": "equals", "value": "nothing of the kind"},
        ],
        "assert_threshold": 0.5,
        "facts": {"kind": "composed"},
    }
    assert rows[3]["assert"][1:] == [
        {"type": "contains-any", "value": ["thanks", "danke, or"]},
        {"type": "regex", "value": "Thai"},
    ]


MINIMAL = "prompts: ['{{q}}']\nproviders: [echo]\ntests:\n  - vars: {q: hello}\n"


@pytest.mark.parametrize(
    ("config", "notes"),
    [
        (
            MINIMAL + "    assert: [{type: javascript, value: 'output.length > 3'}]\n",
            ["'javascript' is left out: it runs a program", "has no score"],
        ),
        (
            MINIMAL + "    assert: [{type: contains, value: 'file://check.py'}]\n",
            ["'file://check.py' is a program"],
        ),
        (
            MINIMAL + "    assert: [{type: contains, value: x, transform: output.a}]\n",
            ["its `transform` is a program"],
        ),
        (
            MINIMAL + "    assert: [{type: factuality, value: x}]\n",
            ["'factuality' is left out: there is no such type here"],
        ),
        (
            MINIMAL + "    assert: [{type: contains, value: '{{q | upper}}'}]\n",
            ["it has the filter 'upper'"],
        ),
        (
            MINIMAL + "    assert: [{type: cost}]\n",
            ["'cost' is left out", "needs a `threshold`"],
        ),
        (
            MINIMAL + "    provider: openai:gpt-4o\n",
            ["'provider' of tests is left out"],
        ),
        (
            MINIMAL + "    options: {transform: output.trim()}\n",
            ["'options.transform' of tests is left out"],
        ),
        (MINIMAL + "  - file://make.py\n", ["tests 'file://make.py' are left out"]),
        (
            MINIMAL + "  - https://docs.example.com/sheet\n",
            ["are on another machine"],
        ),
        (
            MINIMAL + "  - vars: {q: file://context.py}\n",
            ["variable 'file://context.py' is a program"],
        ),
        (
            MINIMAL + "extensions: [file://hooks.py:run]\n",
            ["'extensions' of the config"],
        ),
        (MINIMAL + "evaluateOptions: {delay: 5}\n", ["'evaluateOptions.delay'"]),
        (
            MINIMAL.replace(
                "['{{q}}']", "['{{q}}', 'exec:./make.sh', file://make.py:main]"
            ),
            ["'exec:./make.sh' is left out", "'file://make.py:main' is left out"],
        ),
        (
            MINIMAL.replace("['{{q}}']", "['{{q}}', '{% if q %}a{% endif %}']"),
            ["it has '{% if %}'"],
        ),
        (
            MINIMAL.replace("['{{q}}']", "['{{q}}', '{{ env.SECRET }}']"),
            ["reads the environment"],
        ),
        (
            MINIMAL.replace(
                "[echo]", "[echo, 'python:p.py', 'exec:./p', 'file://p.js']"
            ),
            [
                "'python:p.py' is left out: it is a program",
                "'exec:./p'",
                "'file://p.js'",
            ],
        ),
        (
            MINIMAL.replace("[echo]", "[echo, 'acme:large']"),
            ["'acme:large' is left out: there is no such provider here"],
        ),
        (MINIMAL.replace("q: hello", "r: hello"), ["'q' has no value in a test"]),
        (MINIMAL, ["No test has an assertion"]),
    ],
)
def test_what_cannot_be_taken_over_is_named(config: str, notes: list[str]) -> None:
    write(config)
    done = init()
    assert done.code == 0, done.text
    for note in notes:
        assert f"{note}" in done.err, done.err
    assert done.out.splitlines()[-1].startswith(
        "Next: evalwright run --config suite.yaml"
    )
    ran = typed("run", "--config", "suite.yaml", "--name", "x", "--quiet")
    assert ran.code == 0, ran.text


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            "prompts: ['exec:./a.sh']\nproviders: [echo]\n",
            "no prompt that can be taken",
        ),
        (
            "prompts: [a]\nproviders: ['exec:./p']\n",
            "no provider that can be taken over",
        ),
        ("prompts: [a]\n", "no provider that can be taken over"),
        (
            "prompts: [a]\nproviders: [echo]\ntests: file://t.py\n",
            "no test that can be",
        ),
        ("prompts: [a]\nproviders: [echo]\ntests: file://../t.csv\n", "outside of"),
        ("prompts: [a]\nproviders: [echo]\ntests: /etc/passwd\n", "outside of"),
        ("prompts: [a]\nproviders: [echo]\ntests: file://../*.yaml\n", "leads outside"),
        ("prompts: file:///etc/hostname\nproviders: [echo]\n", "outside of"),
        ("prompts: file://link.txt\nproviders: [echo]\n", "outside of"),
        ("prompts: file://.env\nproviders: [echo]\n", "hidden there"),
        ("prompts: file://no.txt\nproviders: [echo]\n", "'no.txt' cannot be read"),
        (
            f"prompts: file://{'x' * 5000}.txt\nproviders: [echo]\n",
            "cannot be read: File name too long",
        ),
        ("prompts: [a]\nproviders: [file://../p.yaml]\n", "outside of"),
        (MINIMAL.replace("hello", "file://../../secret.txt"), "outside of"),
        (
            MINIMAL + "    assert: [{type: equals, value: file:///etc/passwd}]\n",
            "outside of",
        ),
        ("- a\n- b\n", "not a promptfoo configuration"),
        ("prompts: [", "promptfooconfig.yaml:"),
        ("prompts: !!python/object:os.system [a]\n", "promptfooconfig.yaml:1"),
        (
            "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
            + "".join(
                f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
                for old, new in zip("bcdefgh", "cdefghi", strict=True)
            ),
            "values",
        ),
        ("a: " + "[" * 5_000, "nested too deeply"),
        ("prompts: 3\nproviders: [echo]\n", "no prompt that can be taken over"),
        ("prompts: [a]\nproviders: 7\n", "no provider that can be taken over"),
        (
            "prompts: [a]\nproviders: [echo]\ntests: 7\n",
            "no test that can be taken over",
        ),
        (MINIMAL + "defaultTest: 3\n", "'defaultTest' is a mapping"),
        (MINIMAL + "  - vars: [1]\n", "'vars' of a test is a mapping"),
        (MINIMAL + "    metadata: 3\n", "'metadata' of a test is a mapping"),
        (
            MINIMAL
            + "  - vars: {a: '{{b}}{{b}}{{b}}{{b}}', b: '{{c}}{{c}}{{c}}{{c}}', c: '"
            + "x" * 100_000
            + "'}\n",
            "longer than 1,000,000 characters",
        ),
        (
            MINIMAL
            + "  - vars: {"
            + ", ".join(f"v{n}: [{', '.join(map(str, range(50)))}]" for n in range(9))
            + "}\n",
            "more than 100,000 combinations",
        ),
    ],
)
def test_a_hostile_or_empty_configuration_ends_in_a_sentence(
    config: str, message: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("elsewhere") / "secret.txt"
    outside.write_text("secret {{q}}")
    Path("link.txt").symlink_to(outside)
    Path(".env").write_text("KEY=secret")
    write(config)
    before = sorted(map(str, Path().rglob("*")))
    done = init()
    assert done.code == 2, done.text
    assert message in done.err, done.err
    assert "Traceback" not in done.text
    assert sorted(map(str, Path().rglob("*"))) == before


def test_a_catastrophic_pattern_costs_a_second_and_no_run() -> None:
    write(MINIMAL + "    assert: [{type: regex, value: '^(l+)+$'}]\n")
    assert init().code == 0
    Path("promptfoo.jsonl").write_text(
        Path("promptfoo.jsonl").read_text().replace("hello", "l" * 50 + "!")
    )
    started = time.monotonic()
    done = typed("run", "--config", "suite.yaml", "--name", "x", "--quiet")
    assert time.monotonic() - started < 30
    assert done.code == 1
    assert "gave up" in done.text


def test_nothing_that_is_there_is_replaced_unasked() -> None:
    write(MINIMAL)
    write("my own", "suite.yaml")
    assert init().code == 2
    assert Path("suite.yaml").read_text() == "my own"
    assert not Path("promptfoo.yaml").exists()
    assert init("--replace").code == 0


def test_from_stands_alone() -> None:
    write(MINIMAL)
    assert "leave out the other" in init("--model", "demo/small").err
    done = typed("init", "--from", "no.yaml")
    assert done.code == 2
    assert "no.yaml" in done.err
    assert "is a program" in typed("init", "--from", "promptfooconfig.js").err


PROVIDERS = """\
providers:
  - openai:gpt-4o-mini
  - openai:chat:gpt-4o
  - openai:completion:gpt-3.5-turbo-instruct
  - anthropic:messages:claude-sonnet-4-20250514
  - ollama:chat:qwen3:4b
  - azure:chat:my-deployment
  - id: openai:responses:gpt-5
    label: five
    config: {temperature: 0.5, max_tokens: 100, top_p: 1, presence_penalty: 0.1, seed: 3}
  - anthropic:claude-3-5-haiku-latest: {config: {max_tokens: 20}}
  - file://provider.yaml
"""


def test_providers_become_models() -> None:
    write("id: mistral:mistral-small-latest\nlabel: of a file\n", "provider.yaml")
    notes = Notes()
    listed = yaml.safe_load(PROVIDERS)["providers"]
    models = convert_providers(listed, ConfigFolder(Path.cwd()), notes)
    assert [model.as_setting() for model in models] == [
        "openai/gpt-4o-mini",
        "openai/gpt-4o",
        {
            "model": "openai/gpt-3.5-turbo-instruct",
            "arguments": {"interface": "completions"},
        },
        "anthropic/claude-sonnet-4-20250514",
        "ollama/qwen3:4b",
        "azure-openai/my-deployment",
        {
            "model": "openai/gpt-5",
            "arguments": {
                "temperature": 0.5,
                "max_tokens": 100,
                "top_p": 1,
                "seed": 3,
                "extra_body": {"presence_penalty": 0.1},
            },
            "label": "five",
        },
        {"model": "anthropic/claude-3-5-haiku-latest", "arguments": {"max_tokens": 20}},
        {"model": "mistral/mistral-small-latest", "label": "of a file"},
    ]
    (note,) = notes.sentences()
    assert "not for responses" in note


def test_every_provider_is_one_of_ours() -> None:
    from evalwright.compat.promptfoo.providers import PROVIDERS as table
    from evalwright.models.registry import providers

    assert set(table.values()) <= set(providers())


@pytest.mark.parametrize(
    ("config", "needs_key"),
    [
        ("{apiBaseUrl: 'http://llm.example/v1'}", False),
        ("{apiBaseUrl: 'https://api.openai.com/v1'}", True),
        ("{temperature: 0}", True),
        ("{apiBaseUrl: 'http://llm.example/v1', apiKeyEnvar: OPENAI_API_KEY}", True),
    ],
)
def test_a_key_is_asked_for_where_it_would_be_sent(
    config: str, needs_key: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    provider = f"{{id: openai:gpt-4o, config: {config}}}"
    write(MINIMAL.replace("[echo]", f"[{provider}]"))
    assert ("Set in this shell first: OPENAI_API_KEY." in init().out) == needs_key


def test_an_address_is_the_users_to_allow_and_a_key_is_never_copied() -> None:
    provider = (
        "{id: openai:gpt-4o, config: {apiBaseUrl: 'https://llm.example/v1',"
        " apiKey: sk-abcdefghijkl0123456789}}"
    )
    write(MINIMAL.replace("[echo]", f"[{provider}]"))
    done = init()
    assert done.out.splitlines()[-1] == (
        "Next: evalwright run --config suite.yaml --trust-file suite.yaml"
    )
    note, next_step = done.interleaved.splitlines()[-2:]
    assert "--trust-file says that you agree" in note and next_step.startswith("Next:")
    assert "'apiKey' of the provider" in done.err
    assert not any(
        "sk-abcdef" in path.read_text()
        for path in Path().rglob("*")
        if path.is_file() and path.name != CONFIG
    )
    ran = typed("run", "--config", "suite.yaml", "--name", "x")
    assert ran.code == 2
    assert "settings that need your permission" in ran.err


def test_graders_become_roles() -> None:
    config = (
        MINIMAL + "    assert:\n"
        "      - {type: llm-rubric, value: 'Answers {{q}} politely.'}\n"
        "      - {type: similar, value: hi, threshold: 0.8}\n"
    )
    suite = converted(config)
    assert suite.options == [
        "--role",
        "judge=provider/name",
        "--role",
        "embedder=provider/name",
    ]
    assert "roles" not in suite_of(suite)
    task = yaml.safe_load(suite.files["promptfoo.yaml"])
    assert task["scorers"] == [
        {"assertions": {"judges": ["judge"], "role": "embedder"}}
    ]
    assert rows_of(suite)[0]["assert"][0]["value"] == "Answers hello politely."
    graders = (
        "defaultTest: {options: {provider: {text: openai:gpt-4.1, embedding:"
        " openai:embedding:text-embedding-3-small}}}\n"
    )
    suite = converted(config + graders)
    assert suite.options == []
    assert suite_of(suite)["roles"] == {
        "judge": "openai/gpt-4.1",
        "embedder": {
            "model": "openai/text-embedding-3-small",
            "arguments": {"interface": "embeddings"},
        },
    }


def test_forms_of_prompts() -> None:
    write("prompt,label\nA {{q}},first\nB {{q}},second\n", "p.csv")
    write("- role: user\n  content: 'of YAML {{q}}'\n", "p.yaml")
    write("# Title\n{{q}}\n---\nmore\n", "p.md")
    suite = converted(
        MINIMAL.replace(
            "['{{q}}']",
            "[p.csv, file://p.yaml, p.md, Say hello., 'One in {braces}: {input} {{q}}',"
            ' \'[{"role": "user", "content": "inline {{q}}"}]\','
            ' \'[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]\']',
        )
    )
    assert suite_of(suite)["prompts"] == [
        "promptfoo-prompts/first.txt",
        "promptfoo-prompts/second.txt",
        "promptfoo-prompts/p.txt",
        "promptfoo-prompts/p-2.txt",
        {"name": "prompt-5", "text": "Say hello."},
        {"name": "prompt-6", "text": "One in {braces}: {input} {{ vars.q }}"},
        "promptfoo-prompts/prompt-7.txt",
    ]
    assert (
        suite.files["promptfoo-prompts/p-2.txt"] == "# Title\n{{ vars.q }}\n---\nmore\n"
    )
    assert any("2 messages" in note for note in suite.notes)


def test_values_that_are_no_texts_are_written_as_there() -> None:
    suite = converted(
        "prompts: ['{{user.name}} {{user}} {{n}} {{x}} {{yes}} {{items}} {{nothing}}']\n"
        "providers: [echo]\ntests:\n"
        "  - vars: {user: {name: Ada}, n: 3, x: 1.50, yes: true, items: [[1, 2]], nothing: null}\n"
    )
    assert rows_of(suite)[0]["vars"] == {
        "user": '{"name":"Ada"}',
        "user.name": "Ada",
        "n": "3",
        "x": "1.5",
        "yes": "true",
        "items": "[1,2]",
        "nothing": "",
    }
    prompt = suite.files["promptfoo-prompts/prompt-1.txt"]
    assert "{{ vars['user.name'] }}" in prompt
    assert "{{ vars['items'] }}" in prompt  # a mapping has something of that name


def test_references_and_sets_and_files_of_assertions() -> None:
    write('{"required": ["a"]}', "schema.json")
    suite = converted(
        MINIMAL + "    assert:\n"
        "      - $ref: '#/assertionTemplates/short'\n"
        "      - $ref: '#/assertionTemplates/none'\n"
        "      - {type: is-json, value: file://schema.json}\n"
        "      - type: assert-set\n        threshold: 0.5\n        assert:\n"
        "          - {type: contains, value: a}\n          - {type: python, value: 'True'}\n"
        "assertionTemplates: {short: {type: starts-with, value: He}}\n"
    )
    assert rows_of(suite)[0]["assert"] == [
        {"type": "starts-with", "value": "He"},
        {"type": "is-json", "value": {"required": ["a"]}},
        {
            "type": "assert-set",
            "threshold": 0.5,
            "assert": [{"type": "contains", "value": "a"}],
        },
    ]
    assert any("'#/assertionTemplates/none' is not in" in note for note in suite.notes)


def test_repeats_need_a_temperature() -> None:
    repeated = MINIMAL + "evaluateOptions: {repeat: 3}\n"
    write(repeated)
    assert "at temperature 0" in init().err
    warm = repeated.replace("echo", "{id: openai:gpt-4o, config: {temperature: 0.7}}")
    task = yaml.safe_load(converted(warm).files["promptfoo.yaml"])
    assert task["answer"] == {"temperature": 0.7, "max_tokens": 1024, "draws": 3}
    assert init("--replace").code == 0
    assert typed("tasks", "show", "promptfoo.yaml").code == 0


def test_default_assertions_can_be_disabled() -> None:
    suite = converted(
        MINIMAL + "    options: {disableDefaultAsserts: true}\n"
        "    assert: {type: contains, value: a}\n"
        "defaultTest: {assert: [{type: is-json}]}\n"
    )
    assert rows_of(suite)[0]["assert"] == [{"type": "contains", "value": "a"}]


def test_files_of_tests() -> None:
    write('[{"vars": {"q": "json"}}]', "t/a.json")
    write('{"vars": {"q": "lines"}}\n\n{"vars": {"q": "more"}}\n', "t/b.jsonl")
    write("- vars: {q: yaml}\n- vars: {q: file://text.txt}\n", "t/c.yaml")
    write("of a file\n", "text.txt")
    suite = converted("prompts: ['{{q}}']\nproviders: echo\ntests: file://t/*\n")
    assert [row["input"] for row in rows_of(suite)] == [
        "json",
        "lines",
        "more",
        "yaml",
        "of a file",
    ]


@pytest.mark.parametrize(
    ("cell", "assertion"),
    [
        ("Paris", {"type": "equals", "value": "Paris"}),
        ("equals: 4", {"type": "equals", "value": "4"}),
        ("not-contains:a: b", {"type": "not-contains", "value": "a: b"}),
        ("similar(0.9): Hi", {"type": "similar", "threshold": 0.9, "value": "Hi"}),
        ("similar:Hi", {"type": "similar", "threshold": 0.8, "value": "Hi"}),
        ("latency(1000)", {"type": "latency", "threshold": 1000.0}),
        ("is-json", {"type": "is-json"}),
        ("grade: is kind", {"type": "llm-rubric", "value": "is kind"}),
        ("fn: output.length", {"type": "javascript", "value": "fn: output.length"}),
        ("file://a.py", {"type": "python", "value": "file://a.py"}),
        ("note: nothing", {"type": "equals", "value": "note: nothing"}),
        ("levenshtein(5): a", {"type": "levenshtein", "value": "a"}),
    ],
)
def test_cells_of_expected_columns(cell: str, assertion: dict[str, Any]) -> None:
    assert assertion_of_cell(cell) == assertion


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("^yes$", "yes", "yes\n"),
        (r"\d", "1", "\u0661"),
        (r"\w", "a", "\u00e9"),
        (r"[\w-]", "-", "\u00e9"),
        ("a.c", "abc", "a\rc"),
        (r"\s", "\ufeff", "x"),
        (r"[\s,]", "\u00a0", "x"),
        (r"(?<year>\d+)-\k<year>", "12-12", "12-13"),
        (r"(?<=a)b", "ab", "b"),
        (r"[$.]", "$", "a"),
        (r"[[]", "[", "]"),
        (r"\/path\-x", "/path-x", "path"),
        (r"[a&&b]", "&", "c"),
    ],
)
def test_patterns_mean_what_they_mean_there(
    pattern: str, matching: str, other: str
) -> None:
    translated = re.compile(to_python(pattern))
    assert translated.search(matching)
    assert not translated.search(other)


@pytest.mark.parametrize("pattern", ["[]", "[^]", r"\cA", r"\p{L}", r"[\S]"])
def test_a_pattern_without_a_translation_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="'"):
        to_python(pattern)


def test_a_configuration_as_json() -> None:
    write(
        json.dumps(
            {
                "prompts": ["{{q}}"],
                "providers": ["echo"],
                "tests": [{"vars": {"q": "a"}}],
            }
        ),
        "my-eval.json",
    )
    suite = convert(Path("my-eval.json"))
    assert set(suite.files) >= {"suite.yaml", "my-eval-task.yaml", "my-eval-task.jsonl"}


def test_a_broken_row_is_named_with_its_line() -> None:
    write('{"vars": {"q": "a"}}\n{"vars"\n', "t.jsonl")
    with pytest.raises(EvalwrightError, match=r"t\.jsonl, line 2"):
        converted("prompts: ['{{q}}']\nproviders: echo\ntests: t.jsonl\n")
