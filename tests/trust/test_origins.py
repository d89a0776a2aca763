"""A stranger's file decides what is evaluated and how, never what runs, who gets a key, or what
is read and written elsewhere.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from evalwright.core.errors import ConfigurationError
from evalwright.evaluation.origins import proposed
from evalwright.models.built_in import BUILT_IN
from evalwright.models.registry import open_model
from support.command import write_questions
from support.openai_server import OpenAIServer, serving
from support.typed import typed

KEY = "sk-origins-0123456789abcdef"
OTHER = "gw-origins-0123456789abcdef"


@pytest.fixture(autouse=True)
def _folder(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(own_folder / "person"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("GATEWAY_KEY", OTHER)
    for name in ("OPENAI_BASE_URL", "EVALWRIGHT_PROVIDERS", "EVALWRIGHT_TASKS"):
        monkeypatch.delenv(name, raising=False)
    write_questions(own_folder, 2)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with serving() as found:
        yield found


def key_at(server: OpenAIServer) -> str:
    """The key of the last request."""
    return str(server.request_headers.get("Authorization", ""))


def trust(**tables: dict[str, object]) -> None:
    path = Path("person/evalwright/trust.toml")
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, table in tables.items():
        lines += [
            f"[{name}]",
            *(f'"{key}" = {json.dumps(value)}' for key, value in table.items()),
        ]
    path.write_text("\n".join(lines))


PROPOSALS = {
    "plugins": "plugins: mine.toml",
    "dialect.trust": "dialect: {trust: [.]}",
    "dialect.named_folders": "dialect: {named_folders: [.]}",
    "home": "home: poisoned",
    "replace": "replace: true",
    "out": "out: ../elsewhere",
    "overrides.dataset.path": "overrides: {dataset.path: /etc/passwd}",
    "overrides.dataset.needles.words": "overrides: {dataset.needles.words: /etc/passwd}",
    "overrides.dataset.needles.tokenizer": "overrides: {dataset: {needles: {tokenizer: ../elsewhere}}}",
    "overrides.dataset.common_words.tokenizer": "overrides: {dataset.common_words.tokenizer: /somewhere}",
    "overrides.prompt.file": "overrides: {prompt: {file: ~/../../etc/hostname}}",
    "overrides.sandbox": "overrides: {sandbox: {backend: podman, network: true}}",
    "an image: overrides.sandbox": "overrides: {sandbox: {backend: podman, image: 'python:3'}}",
    "overrides.sandbox.network": "overrides: {sandbox.network: true}",
    "overrides.sandbox.options.read_only": "overrides: {sandbox.options.read_only: [/srv]}",
    "overrides.files./work/x.from": "overrides: {files: {/work/x: {from: ../elsewhere}}}",
    "overrides.scorers.command.files./t.from": "overrides: {scorers: {command: {files: {/t: {from: /srv}}}}}",
    "overrides.scorers.0.command.files./t.from": "overrides: {scorers: [{command: {run: x, files: {/t: {from: '{{ id }}'}}}}]}",
    "overrides.tools": "overrides: {tools: [{name: look}, mine.py]}",
    "overrides.tools.mcp": "overrides: {tools.mcp: 'sh -c evil'}",
    "a server: overrides.tools": "overrides: {answer: {seed: 1}, tools: {mcp: 'https://evil.example/mcp'}}",
    "a file: overrides.tools": "overrides: {tools: ../elsewhere/tools.json}",
    "tasks.0": "tasks: [../elsewhere/questions.yaml]",
    "common.headers": "common: {headers: {X-Mine: a}}",
    "roles.judge.arguments.base_url": (
        "roles: {judge: {model: openai/m, arguments: {base_url: 'http://127.0.0.1:9/v1'}}}"
    ),
    "models.0.arguments.api_key_env": "models: [{model: openai/m, arguments: {api_key_env: AWS_SECRET_ACCESS_KEY}}]",
    "models.0.arguments.trust_remote_code": "models: [{model: hf/x, arguments: {trust_remote_code: true}}]",
    "models.0.arguments.attn_implementation": "models: [{model: hf/x, arguments: {attn_implementation: evil/kernels}}]",
    "models.0.arguments.chat_template": "models: [{model: hf/x, arguments: {chat_template: ../../secret.txt}}]",
    "models.0.arguments.variables": "models: [{model: azure-openai/x, arguments: {variables: {endpoint: 'https://evil.example'}}}]",
    "models.0.arguments.extra": "models: [{model: litellm/openai/x, arguments: {extra: {extra_headers: {A: b}}}}]",
    "models.0.arguments.pretrained": "models: [{model: lm_eval/hf, arguments: {pretrained: evil, batch_size: 1}}]",
    "models.0": "models: ['openai/https://evil.example/v1#m']",
    "suites: models.0.model": (
        "suites: {s: {models: [{model: 'openai/http://me:word@evil.example/v1#m', label: L}]}}"
    ),
}


LOCAL_MODELS = [
    "replay/../elsewhere/answers.jsonl",
    "replay//etc/passwd",
    "replay/~/answers.jsonl",
    "replay/.hidden/answers.jsonl",
    "replay/linked/answers.jsonl",
    "hf//etc",
    "hf/a/../../elsewhere",
    "onnx/../elsewhere",
    "vllm-local//etc",
    "st//etc",
    "hhem/../elsewhere",
    "nli/~nobody/checkpoint",
    "reward//etc",
    "comet//etc",
    "likelihood/hf//etc",
    "verdict/hf/../elsewhere",
    "likelihood/verdict/hf//etc",
]


@pytest.mark.parametrize("model", LOCAL_MODELS)
@pytest.mark.parametrize("place", ["models", "roles"])
def test_a_file_opens_no_model_elsewhere(
    model: str, place: str, own_folder: Path
) -> None:
    (own_folder / "linked").symlink_to(own_folder.parent)
    values: dict[str, object] = {"models": [model]}
    if place == "roles":
        values = {"models": ["openai/m"], "roles": {"judge": {"model": model}}}
    (setting,) = proposed(values, Path.cwd())
    assert setting.value == model
    if place == "models":
        Path("suite.yaml").write_text(
            f"tasks: [questions.yaml]\nmodels: [{json.dumps(model)}]\n"
        )
        asked = typed("run", "--config", "suite.yaml")
        assert (
            asked.code == 2
            and "  models.0: " in asked.err
            and "--trust-file" in asked.err
        ), asked.text


MODELS_HERE = [
    "hf/Qwen/Qwen3-0.6B",
    "hf/Qwen/Qwen3-0.6B@0123abc",
    "replay/runs/mine/samples.jsonl",
    "replay/more/../answers.jsonl",
    "likelihood/hf/gpt2",
    "answers/name",
    "scripted/echo",
    "openai/gpt-4o-mini",
    "bedrock/arn:aws:bedrock:us-east-1:1:inference-profile/x",
]


@pytest.mark.parametrize("model", MODELS_HERE)
def test_models_of_the_hub_and_of_the_working_folder_are_not_asked_about(
    model: str,
) -> None:
    assert not proposed({"models": [model]}, Path.cwd())


@pytest.mark.parametrize("name", PROPOSALS)
def test_a_suite_file_proposes_and_nothing_is_done(name: str) -> None:
    own = PROPOSALS[name]
    models = "" if "models:" in own else "models: [scripted/echo]\n"
    Path("mine.toml").write_text('[openai]\nbase_url = "http://127.0.0.1:9/v1"\n')
    tasks = "" if "tasks:" in own else "tasks: [questions.yaml]\n"
    Path("suite.yaml").write_text(f"{tasks}{models}\n{own}\n")
    more = ("--suite", "s") if "suites" in own else ()
    done = typed("run", "--config", "suite.yaml", *more)
    assert done.code == 2, done.text
    line = next(
        line
        for line in done.err.splitlines()
        if line.startswith(f"  {name.split(': ')[-1]}: ")
    )
    assert re.search(r"\(suite.yaml:\d+\)$", line)
    assert "--trust-file 'suite.yaml'" in done.err
    assert not Path("runs").exists() and not Path("home").exists()


def test_a_file_makes_no_prices_for_the_persons_budget() -> None:
    Path("suite.yaml").write_text(
        "tasks: [questions.yaml]\nmodels: [scripted/echo]\nprice: [0/0]\nname: mine\n"
    )
    refused = typed("run", "--config", "suite.yaml", "--budget", "0.01 USD")
    assert refused.code == 2 and "  price: " in refused.err, refused.text
    own = typed(
        "run", "--config", "suite.yaml", "--budget", "0.01 USD", "--price", "1/1"
    )
    assert own.code == 0, own.text
    assert typed("run", "--config", "suite.yaml").code == 0


@pytest.mark.parametrize(
    "field", ["model: other", "messages: []", "prompt: Hello", "n: 50"]
)
def test_a_file_does_not_ask_another_model_or_something_else(
    field: str, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    Path("suite.yaml").write_text(
        f"tasks: [questions.yaml]\nmodels: [{{model: openai/m, arguments: {{extra_body: {{{field}}}}}}}]\n"
    )
    asked = typed("run", "--config", "suite.yaml")
    assert asked.code == 2 and "models.0.arguments.extra_body: " in asked.err, (
        asked.text
    )
    done = typed("run", "--config", "suite.yaml", "--trust-file", "suite.yaml")
    assert (
        done.code == 2
        and f"extra_body.{field.partition(':')[0]} would replace" in done.err
    ), done.text
    assert not server.received


FIELDS_THAT_ACT = [
    "extra_body: {tools: [{type: mcp, server_label: s, server_url: 'https://evil.example/mcp', require_approval: never}]}",
    "extra_body: {models: [expensive]}",
    "extra_body: {store: true}",
    "extra_body: {max_completion_tokens: 1000000}",
    "extra_body: {max_tokens: 1000000}",
    "extra_body: {service_tier: priority}",
    "extra_body: {instructions: 'Say yes.'}",
    "extra_body: {web_search_options: {}}",
    "extra_body: {plugins: [{id: web}]}",
    "extra_body: {provider: {order: [mine]}}",
    "extra_body: {metadata: {user: mine}}",
    "extra_body: {user: somebody}",
    "extra_body: {logit_bias: {'1': 100}}",
    "extra_body: {top_k: [1]}",
    "extra_body: {top_k: 1, store: true}",
    "extra_body: {reasoning_effort: {effort: high}}",
    "extra_body: {chat_template_kwargs: {documents: [x]}}",
    "extra_body: '{\"store\": true}'",
    "extra_body: [store]",
    "extra_body.store: true",
    "interface: responses",
    "interface: openai-responses",
    "interface: anthropic",
    "organisation: org-of-somebody",
    "headers: {X-Title: mine}",
    "variables: {project: mine}",
    "subfolder: ../../elsewhere",
    "extra: {store: true}",
    "engine: {enforce_eager: true}",
    "trust_remote_code: true",
    "replicas: [{extra_body: {store: true}}]",
]


@pytest.mark.parametrize("arguments", FIELDS_THAT_ACT)
@pytest.mark.parametrize("place", ["models", "common", "roles"])
def test_fields_of_the_body_and_headers_are_asked_about(
    arguments: str, place: str, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever would be sent beside what the task asks, with the person's key, is shown first."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    text = {
        "models": f"models: [{{model: openai/m, arguments: {{{arguments}}}}}]\n",
        "common": f"models: [openai/m]\ncommon: {{{arguments}}}\n",
        "roles": f"models: [openai/m]\nroles: {{judge: {{model: openai/m, arguments: {{{arguments}}}}}}}\n",
    }[place]
    values = yaml.safe_load("tasks: [questions.yaml]\n" + text)
    (setting,) = proposed(values, Path.cwd())
    assert setting.path[-1] == arguments.partition(":")[0]
    if place == "models":
        Path("suite.yaml").write_text("tasks: [questions.yaml]\n" + text)
        asked = typed("run", "--config", "suite.yaml")
        assert asked.code == 2 and "--trust-file" in asked.err, asked.text
        assert not server.received


SAFE_FIELDS = [
    "extra_body: {top_k: 5, min_p: 0.1, repetition_penalty: 1.1, seed: 3}",
    "extra_body: {reasoning_effort: low, chat_template_kwargs: {enable_thinking: false}}",
    "extra_body: {}",
    "interface: completions",
    "interface: openai-chat",
    "top_k: 5",
    "thinking: low",
]


@pytest.mark.parametrize("arguments", SAFE_FIELDS)
def test_fields_that_only_sample_otherwise_are_not_asked_about(arguments: str) -> None:
    values = yaml.safe_load(
        f"tasks: [questions.yaml]\nmodels: [{{model: openai/m, arguments: {{{arguments}}}}}]\n"
    )
    assert not proposed(values, Path.cwd())


NOT_ASKED_ABOUT = {
    "add_bos", "add_special_tokens", "attn_implementation", "batch_size", "bos", "chat_template", "chat_template_args", "chunk", "cleaning", "context_length", "deadline",
    "device", "device_map", "dtype", "echo", "enable_thinking", "file", "fit", "label", "language", "latency", "leave_out", "local", "max_attempts",
    "max_concurrency", "max_length", "max_memory", "max_tokens", "max_tokens_field", "memory", "min_p", "offload_folder", "peft", "prefix_token",
    "preset", "prompt", "quantization", "reasoning_effort", "requests_per_minute", "revision", "scoring", "seed", "sentences", "share", "stream", "subfolder",
    "temperature", "text", "thinking", "threads", "timeout", "tokenizer", "top_k", "top_p", "use_fast_tokenizer",
}  # fmt: skip


def test_every_argument_of_every_backend_is_on_the_list_or_asked_about() -> None:
    """A new argument is asked about until somebody has decided that it is harmless, and has
    written it down here.
    """
    not_asked = set()
    for place in (*BUILT_IN.values(), "evalwright.models.remote.openai:OpenAIModel", "evalwright.models.remote.api:ApiModel",
                  "evalwright.models.remote.llamacpp:LlamaCppModel"):  # fmt: skip
        module, _, name = place.partition(":")
        parameters = inspect.signature(
            getattr(import_module(module), name)
        ).parameters.values()
        for parameter in parameters:
            if parameter.kind == parameter.KEYWORD_ONLY:
                values = {
                    "models": [
                        {"model": "openai/m", "arguments": {parameter.name: "x"}}
                    ]
                }
                if not proposed(values, Path.cwd()):
                    not_asked.add(parameter.name)
    assert not_asked == NOT_ASKED_ABOUT


def test_what_is_harmless_is_not_asked_about() -> None:
    Path("suite.yaml").write_text(
        "tasks: [questions.yaml]\noverrides: {version: 2, tools: [{name: look}]}\nlimit: 1\nname: mine\nout: more/runs\ncommon: {seed: 1}\n"
        "models: [{model: scripted/constant, arguments: {text: hello}}, {model: ollama/m, arguments: "
        "{base_url: 'http://localhost:9/v1', max_attempts: 1, extra_body: {top_k: 1}}}]\n"
    )
    refused = typed("run", "--config", "suite.yaml", "--trust-file", "suite.yaml")
    assert refused.code == 2 and "proposes nothing" in refused.err
    done = typed(
        "run", "--config", "suite.yaml", "--quiet", "--model", "scripted/constant"
    )
    assert done.code == 0, done.text


def test_a_file_is_allowed_by_name_for_once_or_by_content(server: OpenAIServer) -> None:
    suite = Path("suite.yaml")
    suite.write_text(
        f"tasks: [questions.yaml]\nname: s\nmodels: [{{model: openai/m, arguments: {{base_url: '{server.url}', "
        "api_key_env: GATEWAY_KEY}}]\n"
    )
    asked = typed("run", "--config", "suite.yaml")
    assert asked.code == 2 and not server.received
    digest = re.search(r'write "([0-9a-f]{64})"', asked.err)
    assert digest
    assert (
        typed("run", "--config", "suite.yaml", "--trust-file", "other.yaml").code == 2
    )
    assert (
        typed("run", "--config", "suite.yaml", "--trust-file", "suite.yaml").code == 0
    )
    assert key_at(server) == f"Bearer {OTHER}"
    # A record of that run is a stranger's file like any other.
    again = typed("run", "--config", "runs/s/run.json", "--name", "again")
    assert again.code == 2 and "base_url" in again.err and "api_key_env" in again.err
    trust(files={digest[1]: "suite.yaml"})
    assert typed("run", "--config", "suite.yaml", "--name", "remembered").code == 0
    suite.write_text(suite.read_text() + "seed: 3\n")
    assert typed("run", "--config", "suite.yaml", "--name", "changed").code == 2
    Path("person/evalwright/trust.toml").chmod(0o666)
    done = typed("run", "--config", "suite.yaml", "--name", "changed")
    assert done.code == 2 and "can be changed by other people" in done.err


def test_what_a_remembered_file_names_is_remembered_by_content_too() -> None:
    Path("mine.toml").write_text('[mine]\nbase_url = "http://localhost:9/v1"\n')
    Path("suite.yaml").write_text(
        "plugins: mine.toml\ntasks: [questions.yaml]\nmodels: [scripted/echo]\nname: s\n"
    )
    digest = re.search(
        r'write "([0-9a-f]{64})"', typed("run", "--config", "suite.yaml").err
    )
    assert digest
    trust(files={digest[1]: "suite.yaml"})
    assert typed("run", "--config", "suite.yaml").code == 0
    Path("mine.toml").write_text('[openai]\nbase_url = "http://localhost:9/v1"\n')
    assert typed("run", "--config", "suite.yaml").code == 2


def test_the_command_line_decides_in_place_of_the_file(server: OpenAIServer) -> None:
    Path("suite.yaml").write_text(
        "tasks: [questions.yaml]\nmodels: [{model: openai/m, arguments: {base_url: 'https://evil.example/v1'}}]\n"
    )
    done = typed(
        "run", "--config", "suite.yaml", "-M", f"base_url={server.url}", "--quiet"
    )
    assert done.code == 0, done.text
    assert key_at(server) == ""
    # A key from the command line does not go to an address from the file.
    assert (
        typed("run", "--config", "suite.yaml", "-M", "api_key_env=GATEWAY_KEY").code
        == 2
    )


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ((), ""),
        (("-M", "api_key_env=GATEWAY_KEY"), f"Bearer {OTHER}"),
        (("-M", "api_key_env=OPENAI_API_KEY"), f"Bearer {KEY}"),
    ],
)
def test_a_key_goes_where_it_belongs(
    given: tuple[str, ...], sent: str, server: OpenAIServer
) -> None:
    done = typed(
        "run",
        "questions.yaml",
        "--model",
        f"openai/{server.url}#m",
        "--name",
        "k",
        "--quiet",
        *given,
    )
    assert done.code == 0, done.text
    assert key_at(server) == sent


def test_the_environment_and_the_trust_file_may_bind_a_key(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust(keys={"127.0.0.1": "GATEWAY_KEY"})
    run = ("run", "questions.yaml", "--quiet", "--model")
    assert typed(*run, f"openai/{server.url}#m", "--name", "bound").code == 0
    assert key_at(server) == f"Bearer {OTHER}"
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert typed(*run, "openai/other", "--name", "environment").code == 0
    assert key_at(server) == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/v1",
        "https://api.openai.com.evil.example/v1",
        "https://api.openai.com@evil.example/v1",
        "https://evil.example/api.openai.com/v1",
        "http://10.0.0.7/v1",
        "http://gpu-box/v1",
    ],
)
def test_another_server_gets_no_key_and_says_how_to_name_one(url: str) -> None:
    model = open_model("openai/m", {"base_url": url})
    assert model.describe()["key"] in ("none", "the base URL")
    if "@" not in url and "http:" not in url:
        with pytest.raises(
            ConfigurationError,
            match=r"own hosts.*api_key_env",
        ):
            model.check()
    assert (
        open_model("openai/m", {"base_url": "https://api.openai.com/v1/"}).describe()[
            "key"
        ]
        == "$OPENAI_API_KEY"
    )


def test_a_dot_env_file_gives_keys_and_nothing_else(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    Path(".env").write_text(
        f"OPENAI_API_KEY={KEY}\nOPENAI_BASE_URL={server.url}\nHTTPS_PROXY={server.url}\nEVALWRIGHT_PROVIDERS=mine.toml\n"
        "EVALWRIGHT_HOME=poisoned\nXDG_CONFIG_HOME=.\nEVALWRIGHT_TASKS=/etc\n"
    )
    Path("mine.toml").write_text(f'[openai]\nbase_url = "{server.url}"\n')
    found = open_model("openai/gpt-4o-mini").describe()
    assert (
        found["key"] == ".env:OPENAI_API_KEY" and server.root not in found["base_url"]
    )
    done = typed(
        "run",
        "questions.yaml",
        "--model",
        f"openai/{server.url}#m",
        "--name",
        "k",
        "--quiet",
    )
    assert done.code == 0 and key_at(server) == "" and not Path("poisoned").exists()


def test_a_trust_file_in_the_working_folder_counts_for_nothing(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "person")
    monkeypatch.setenv("HOME", str(Path("nobody").resolve()))
    trust(keys={"127.0.0.1": "OPENAI_API_KEY"})
    assert (
        typed(
            "run", "questions.yaml", "--model", f"openai/{server.url}#m", "--quiet"
        ).code
        == 0
    )
    assert key_at(server) == ""


READING = {
    "data": "dataset: {file}",
    "a pattern": "dataset: {folder}/*.jsonl",
    "a prompt": "prompt: {{file: {file}}}",
    "shots": "prompt: {{few_shot: {{count: 1, dataset: {file}}}}}",
    "a table": "for_each: {{table: {file}}}",
}


@pytest.mark.parametrize("name", READING)
@pytest.mark.parametrize("how", ["absolute", "upwards", "link", "hidden"])
def test_a_task_file_stays_in_its_folder(
    name: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "tasks").mkdir(parents=True)
    secret = (
        checkout / "tasks" / ".cache" if how == "hidden" else tmp_path
    ) / "secret.jsonl"
    secret.parent.mkdir(exist_ok=True)
    secret.write_text(
        '{"id": "s", "question": "the secret?", "answer": "1", "x": "y"}\n'
    )
    (checkout / "tasks" / "linked").symlink_to(tmp_path)
    monkeypatch.chdir(checkout)
    folder = {
        "absolute": str(tmp_path),
        "upwards": "../..",
        "link": "linked",
        "hidden": ".cache",
    }[how]
    own = READING[name].format(file=f"{folder}/secret.jsonl", folder=folder)
    rows = (
        ""
        if "dataset:" in own.split("few_shot")[0]
        else "dataset: {rows: [{question: q, answer: a}]}\n"
    )
    Path("tasks/t.yaml").write_text(
        f"task: t\n{rows}{own}\nsample: {{input: '{{{{ question }}}}', target: '{{{{ answer }}}}'}}\nscorers: [exact-match]\n"
    )
    shown = typed("tasks", "preview", "tasks/t.yaml")
    assert (
        shown.code == 2
        and "so it is not read" in shown.err
        and "the secret" not in shown.text
    )
    trusted = typed("tasks", "preview", "tasks/t.yaml", "--trust", "tasks")
    assert "so it is not read" not in trusted.err


@pytest.mark.parametrize("how", ["absolute", "upwards", "link", "hidden"])
@pytest.mark.parametrize("kind", ["needles", "common_words"])
def test_a_task_file_opens_no_tokenizer_elsewhere(
    how: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "tasks").mkdir(parents=True)
    (checkout / "linked").symlink_to(tmp_path)
    monkeypatch.chdir(checkout)
    folder = {
        "absolute": str(tmp_path),
        "upwards": "..",
        "link": "linked",
        "hidden": ".cache",
    }[how]
    Path("tasks/words.txt").write_text("cat\ndog\nowl\n")
    more = (
        ", sentence: '{word} {number}', frames: ['{a} {b}'], asked: 1"
        if kind == "needles"
        else ", common: 1"
    )
    Path("tasks/t.yaml").write_text(
        f"task: t\ndataset: {{{kind}: {{tokens: 100, tokenizer: {folder}/secret, count: 1, words: words.txt{more}}}}}\n"
        "sample: {input: '{{ text }}', target: '1'}\nscorers: [exact-match]\n"
    )
    asked = typed("tasks", "preview", "tasks/t.yaml")
    assert asked.code == 2 and "so it is not read" in asked.err, asked.text
    trusted = typed("tasks", "preview", "tasks/t.yaml", "--trust", "tasks")
    assert "so it is not read" not in trusted.err


def test_a_workflow_of_a_file_that_proposes_needs_permission_too() -> None:
    Path("suite.yaml").write_text(
        "tasks: [questions.yaml]\nmodels: [{model: openai/m, arguments: {api_key_env: GATEWAY_KEY}}]\n"
    )
    command = (
        "leaderboard",
        "--workflow",
        "w.yml",
        "--config",
        "suite.yaml",
        "--into",
        "R.md",
    )
    assert typed(*command).code == 2 and not Path("w.yml").exists()
    assert typed(*command, "--trust-file", "suite.yaml").code == 0
    assert "--trust-file suite.yaml" in Path("w.yml").read_text()
