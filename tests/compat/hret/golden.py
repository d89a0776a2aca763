"""The recorded runs of HRET, executed against our modules: plug-ins and a server answer what the
record says, and calls are compared.

A reply is found by its prompt, the replies to one prompt in the order of their occurrence.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import logging
import os
import re
import sys
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import evalwright.compat.hret as package
from compat.hret import recorded_weights
from evalwright.compat.hret import (
    datasets,
    evaluation,
    evaluator,
    hret,
    models,
    opened_models,
    rules,
    runner,
    scaling_methods,
)
from evalwright.compat.hret.datasets.base import BaseDataset
from evalwright.compat.hret.published import rules as published_rules
from evalwright.compat.hret.published import scorers as published_scorers
from evalwright.compat.hret.published.replies import detected
from evalwright.compat.hret.utils import metrics, prompt_template, util
from evalwright.models.registry import open_model
from evalwright.models.scripted import ScriptedModel

FILE = Path(__file__).parents[4] / "shared/golden/hret/golden.jsonl.gz"
Record = dict[str, Any]


def records() -> Iterator[Record]:
    """All of them."""
    with gzip.open(FILE, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


class Replay:
    """What answers for one record, and what it was asked."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.replies: dict[tuple[str, str], deque[Any]] = defaultdict(deque)
        self.sent: dict[str, Counter[str]] = defaultdict(Counter)
        self.wanted: dict[str, Counter[str]] = defaultdict(Counter)
        self.functions = 0
        self.empty: set[str] = set()
        """Payloads to which the reply was empty: ours are sent again."""
        for call in record.get("calls") or []:
            role = call["role"]
            if role == "http":
                if "payload" in call:
                    key = canonical(call["payload"])
                    self.replies[role, key].append(
                        (call["status"], call.get("response"))
                    )
                    self.wanted[role][key] += 1
                    if call.get("response") == "":
                        self.empty.add(key)
                continue
            for item in call["items"]:
                key = canonical(
                    [item["input"], item["prediction"]]
                    if role == "reward"
                    else item["input"]
                )
                self.replies[role, key].append(item)
                self.wanted[role][key] += 1

    def answer(self, role: str, key: Any) -> Any:
        """The next reply; the last one once more where all were given."""
        found = self.replies.get((role, canonical(key)))
        self.sent[role][canonical(key)] += 1
        if not found:
            return None
        return found.popleft() if len(found) > 1 else found[0]


def canonical(value: Any) -> str:
    """A prompt or payload as a key."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


CURRENT: list[Replay] = []
HAS_LANGDETECT = bool(find_spec("langdetect"))
"""Without it languages are not compared; everything else is."""


class Scripted(models.BaseModel):
    """The scripted back end: its chain of thought is written as HRET's own back ends have it."""

    def __init__(self, **params: Any) -> None:
        super().__init__()
        self.params = params

    def generate_batch(
        self, inputs: list[dict[str, Any]], return_logits: bool = False, **options: Any
    ) -> list[dict[str, Any]]:
        """The recorded replies."""
        out = []
        for one in inputs:
            text = one["input"]
            item = CURRENT[-1].answer("generate", text)
            if item is None:
                raise RuntimeError(f"no recorded reply to {text[-200:]!r}")
            made = {**one} if self.params.get("copy_items") else one
            made["prediction"] = item["response"]
            if item.get("logits") is not None:
                made["logits"] = item["logits"]
            if self.params.get("cot") and item["response"] is not None:
                parser = (
                    self.params.get("cot_parser") or prompt_template.default_cot_parser
                )
                made["chain_of_thought"], made["prediction"] = parser(item["response"])
            out.append(made)
        return out


class Swapper(Scripted):
    """Returns its samples in the other order."""

    def generate_batch(
        self, inputs: list[dict[str, Any]], return_logits: bool = False, **options: Any
    ) -> list[dict[str, Any]]:
        """As scripted, reversed."""
        return super().generate_batch(inputs)[::-1]


class ScriptedJudge(models.BaseJudge):
    """The scripted judge."""

    def __init__(self, **params: Any) -> None:
        self.params = params

    def judge_batch(
        self, inputs: list[dict[str, Any]], **options: Any
    ) -> list[dict[str, Any]]:
        """The recorded replies."""
        out = []
        for one in inputs:
            item = CURRENT[-1].answer("judge", one["input"])
            if item is None:
                raise RuntimeError(f"no recorded verdict on {one['input'][-200:]!r}")
            score = (
                {"judge_score": item["judge_score"]} if "judge_score" in item else {}
            )
            out.append(
                {
                    **one,
                    "prediction": item["response"],
                    "finish_reason": "stop",
                    **score,
                }
            )
        return out


class ScriptedReward(models.BaseRewardModel):
    """The scripted reward model."""

    def __init__(self, **params: Any) -> None:
        self.params = params

    def score_batch(
        self, inputs: list[dict[str, Any]], **options: Any
    ) -> list[dict[str, Any]]:
        """The recorded rewards."""
        found = [
            CURRENT[-1].answer("reward", [one["input"], one["prediction"]])
            for one in inputs
        ]
        return [
            {**one, "reward": item["reward"]}
            for one, item in zip(inputs, found, strict=True)
        ]


class FirstCharacter(scaling_methods.BaseScalingMethod):
    """The first character of a reply."""

    def apply(self, data: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """One reply each, cut."""
        return [
            {**one, "prediction": (one["prediction"] or " ")[0]}
            for one in self.model.generate_batch(data)
        ]


class OddEvaluator(evaluation.BaseEvaluator):
    """Counts samples."""

    def evaluate_predictions(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        """How many."""
        return {"n": len(samples)}


def _rows_of(record: Record) -> list[dict[str, Any]]:
    """The rows of a dataset of the harness, as far as the record shows them."""
    if record["notes"].startswith("[{"):
        found: list[dict[str, Any]] = json.loads(record["notes"])
        return found
    generated = [
        call for call in record.get("calls") or [] if call["role"] == "generate"
    ]
    samples = record.get("samples") or (record.get("output") or {}).get("samples") or []
    known = {key for row in samples for key in row}.difference(WRITTEN)
    keys = set(generated[0]["items"][0].get("keys", []) if generated else ()) or known
    return [{key: one for key, one in row.items() if key in keys} for row in samples]


WRITTEN = ("prediction", "evaluation", "language_penalizer", "finish_reason", "error", "logits", "few_shot_applied")  # fmt: skip
"""What an evaluation writes into a row."""


INFO: dict[str, dict[str, Any]] = {
    "g_list": {"evaluation_only": ["math_match"]},
    "g_scaling": {"scaling_only": ["best_of_n"]},
    "g_str": {"evaluation_only": "string_match,partial_match"},
    "g_true": {"evaluation_only": True},
}


def _dataset(name: str) -> type[Any]:
    class Custom(BaseDataset):
        def __init__(
            self, split: str = "test", subset: Any = None, **kwargs: Any
        ) -> None:
            super().__init__(name, split, subset, None, **kwargs)

        def load(self) -> list[dict[str, Any]]:
            rows = [dict(row) for row in _rows_of(CURRENT[-1].record)]
            if name == "two_rows":
                texts = (("하나", "1"), ("", "2"), ("셋", "3"))
                rows = [
                    {"input": text, "reference": reference} for text, reference in texts
                ]
            if name == "g_plain" and CURRENT[-1].record["call"].count("num_few_shot=1"):
                rows = [
                    {"input": f"{n} 더하기 1은?", "reference": str(n + 1)}
                    for n in range(len(rows) + 1)
                ]
            return rows

        def info(self) -> dict[str, Any]:
            more: dict[str, Any] = INFO.get(name, {})
            return {**super().info(), **more}

    return Custom


CUSTOM = (
    "judge_plain", "judge_mixed", "judge_badtype", "g_list", "g_scaling", "g_str", "g_true", "g_plain", "g_empty", "two_rows",
    *(f"row_shape_{n}" for n in range(12)),
)  # fmt: skip
PLUGINS = {
    "scripted": Scripted, "swapper": Swapper, "scripted_judge": ScriptedJudge, "scripted_judge_score": ScriptedJudge,
    "scripted_reward": ScriptedReward,
}  # fmt: skip


def tag_parser(text: str) -> tuple[str, str]:
    """A parser of the recorded calls."""
    found = re.search(r"\([A-Ea-e]\)", text)
    return text.strip(), found[0] if found else ""


def agg_last(candidates: list[str]) -> str:
    """An aggregator of the recorded calls."""
    return candidates[-1]


def bad_parser(text: str) -> tuple[str, str, str]:
    """A parser that returns too much."""
    return "a", "b", "c"


@contextlib.contextmanager
def plugins() -> Iterator[None]:
    """Everything registered that the recorded calls name, and `llm_eval` for our modules."""
    parsers = ModuleType("myparsers")
    parsers.tag_parser = tag_parser  # type: ignore[attr-defined]
    parsers.agg_last = agg_last  # type: ignore[attr-defined]
    parsers.bad_parser = bad_parser  # type: ignore[attr-defined]
    tables: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (models.MODEL_REGISTRY, dict(PLUGINS)),
        (datasets.DATASET_REGISTRY, {name: _dataset(name) for name in CUSTOM}),
        (scaling_methods.SCALING_REGISTRY, {"first_char": FirstCharacter}),
        (evaluation.EVALUATION_REGISTRY, {"odd_eval": OddEvaluator}),
    ]
    aliases = {
        "llm_eval": package, "llm_eval.models": models, "llm_eval.scaling_methods": scaling_methods, "llm_eval.datasets": datasets,
        "llm_eval.evaluation": evaluation, "llm_eval.runner": runner, "llm_eval.evaluator": evaluator, "llm_eval.hret": hret,
        "llm_eval.utils.util": util, "llm_eval.utils.prompt_template": prompt_template, "myparsers": parsers,
    }  # fmt: skip
    kept = [dict(table) for table, _ in tables]
    for table, more in tables:
        table.update(more)
    before = {name: sys.modules.get(name) for name in aliases}
    sys.modules.update(aliases)
    try:
        yield
    finally:
        for (table, _), old in zip(tables, kept, strict=True):
            table.clear()
            table.update(old)
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module


def hub(record: Record) -> Any:
    """`datasets.load_dataset` with the rows of a record alone."""
    from datasets import Dataset, DatasetDict

    rows = record.get("rows") or {}

    def load_dataset(
        path: str, name: str | None = None, split: str | None = None, **options: Any
    ) -> Any:
        options = {
            key: one
            for key, one in options.items()
            if one is not None and key not in ("streaming", "token")
        }
        configs = rows.get(path)
        if not configs:
            raise ValueError(
                f"BuilderConfig '{name}' not found: the record has no rows of {path}."
            )
        for known in (str(name), "default"):
            if known in configs:
                splits = configs[known]
                break
        else:
            if name is not None or len(configs) != 1:
                raise ValueError(
                    f"BuilderConfig '{name}' not found. Available: {list(configs)}"
                )
            splits = next(iter(configs.values()))
        if split is None:
            return DatasetDict(
                {key: Dataset.from_list(one) for key, one in splits.items()}
            )
        whole = str(split).partition("[")[0]
        if whole not in splits:
            raise ValueError(
                f'Unknown split "{split}". Should be one of {list(splits)}.'
            )
        made = Dataset.from_list(splits[whole])
        if found := re.search(r"\[(\d*):(\d*)\]", str(split)):
            made = made.select(
                range(int(found[1] or 0), min(int(found[2] or len(made)), len(made)))
            )
        return made

    return load_dataset


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = CURRENT[-1].answer("http", payload)
        status, text = found or (404, None)
        chat = self.path.endswith("/chat/completions")
        inner = (
            {"message": {"role": "assistant", "content": text}}
            if chat
            else {"text": text}
        )
        body = {
            "id": "x",
            "model": payload.get("model", "m"),
            "choices": [{"index": 0, "finish_reason": "stop", **inner}],
        }
        data = json.dumps(
            body if status == 200 else {"error": {"message": "recorded failure"}}
        ).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def server() -> Iterator[int]:
    """A server that answers what the record says."""
    made = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    try:
        yield made.server_address[1]
    finally:
        made.shutdown()
        made.server_close()
        thread.join()


def run(
    record: Record, port: int, folder: Path
) -> tuple[Any, BaseException | None, Replay]:
    """The value of the call, or what it raised, and what was asked. It runs in `folder`."""
    replay = Replay(record)
    CURRENT.append(replay)
    os.environ["EVALWRIGHT_HOME"] = str(
        folder / "homes" / blake2b(record["name"].encode(), digest_size=8).hexdigest()
    )
    import datasets as hub_library

    text = record["call"].replace("PORT", str(port))
    files = folder / "files"
    files.mkdir(exist_ok=True)
    if "files/g." in text:
        write_files(files)
    if record["notes"].startswith("config: "):
        config = record["notes"].removeprefix("config: ")
        for name in re.findall(r"run_from_config\('([^']+)'\)", text):
            (folder / name).write_text(config, encoding="utf-8")
    scope: dict[str, Any] = {
        **{name: getattr(package, name) for name in package.__all__}, **vars(datasets), **vars(models), **vars(evaluation),
        **vars(scaling_methods), "EV": evaluator, "hret": hret, "io": io, "contextlib": contextlib, "json": json, "re": re,
        "language_penalizer": metrics.language_penalizer, "N": None, "EvaluationResult": util.EvaluationResult, "os": os,
        **{name: getattr(prompt_template, name) for name in dir(prompt_template) if not name.startswith("__")},
    }  # fmt: skip
    scope["myparsers"] = sys.modules["myparsers"]
    from evalwright.compat.hret.evaluation import llm_judge

    scope["LJ"] = llm_judge

    def fn(prompt: Any) -> str:
        replay.functions += 1
        return "(A)"

    scope["fn"] = fn
    kept = hub_library.load_dataset
    argv = sys.argv
    setattr(opened_models, "open_model", opened)  # noqa: B010
    hub_library.load_dataset = hub(record)
    level = logging.root.manager.disable
    if not HAS_LANGDETECT:
        for module in (published_scorers, published_rules):
            setattr(module, "detected", lambda text, language: 0.0)  # noqa: B010
    logging.disable(logging.CRITICAL)
    try:
        with rules.using("published"), contextlib.redirect_stderr(io.StringIO()):
            try:
                value = eval(compile(text, record["name"], "eval"), scope)
            except SyntaxError:
                exec(compile(text, record["name"], "exec"), scope)
                value = scope.get("out", scope.get("r"))
        return value, None, replay
    except Exception as error:
        return None, error, replay
    finally:
        logging.disable(level)
        for module in (published_scorers, published_rules):
            setattr(module, "detected", detected)  # noqa: B010
        hub_library.load_dataset = kept
        sys.argv = argv
        setattr(opened_models, "open_model", open_model)  # noqa: B010
        CURRENT.pop()


def output_differences(record: Record, wanted: Any, value: Any) -> list[str]:
    """Of what a call printed or made: results as results."""
    if isinstance(wanted, dict) and {"metrics", "samples", "info"} <= wanted.keys():
        if value is None:
            return ["no result"]
        if not isinstance(value, util.EvaluationResult):
            value = util.EvaluationResult(
                value["metrics"], value["samples"], value["info"]
            )
        return result_differences({**record, **wanted}, value)
    if (
        isinstance(wanted, dict)
        and isinstance(value, Mapping)
        and wanted.keys() == value.keys()
    ):
        parts = {
            key: output_differences(record, wanted[key], value[key]) for key in wanted
        }
        return [
            f"{key}: {one}"
            for key, found in parts.items()
            for one in found
            if key != "description"
        ]
    difference = first_difference(wanted, _plain(value))
    return [] if difference is None else [f"output{difference}"]


def opened(name: str, arguments: Mapping[str, Any] | None = None) -> Any:
    """As `open_model`, but the weights and services that are not here are answered for by the
    record.
    """
    if name in recorded_weights.NAMES:
        return recorded_weights.recorded_model(name, CURRENT[-1].record)
    if name == "hf/fake":
        return _scripted(
            name, lambda request: CURRENT[-1].answer("judge_hf", request.prompt)
        )
    if name.startswith("litellm/"):
        return _scripted(
            name,
            lambda request: CURRENT[-1].answer(
                "litellm", [turn.as_dict() for turn in request.prompt]
            ),
        )
    return open_model(name, arguments)


def _scripted(name: str, find: Any) -> ScriptedModel:
    replay = CURRENT[-1]

    def reply(request: Any) -> str:
        CURRENT.append(replay)
        try:
            return str((find(request) or {"response": ""})["response"])
        finally:
            CURRENT.pop()

    return ScriptedModel(reply, name=name)


def write_files(folder: Path) -> None:
    """The files that the calls of `generic_file` read, made of what was read of them."""
    import pandas as pd

    if (folder / "g.csv").exists():
        return
    for record in records():
        if record["name"] == "ds/generic_file/csv":
            rows = record["output"]["loaded"]
            table = pd.DataFrame(
                [
                    {
                        "question": one["input"],
                        "answer": one["reference"],
                        **one["metadata"],
                    }
                    for one in rows
                ]
            )
            table.to_csv(folder / "g.csv", index=False)
            table.to_csv(folder / "g.tsv", index=False, sep="\t")
            table.to_parquet(folder / "g.parquet")
            table.to_json(folder / "g.json", orient="records")


INFO_KEYS = (
    "dataset_name", "subset", "split", "model_backend_name", "scaling_method_name", "evaluation_method_name", "num_few_shot_configured",
    "num_few_shot_applied", "few_shot_source_split", "language_penalize_enabled", "target_lang_for_penalty",
)  # fmt: skip


def differences(
    record: Record, value: Any, error: BaseException | None, replay: Replay
) -> list[str]:
    """Where the call came to something else than in the record: nothing for equal ones."""
    wanted = record.get("exception")
    if wanted or error:
        if (
            wanted
            and error
            and wanted["type"] in {kind.__name__ for kind in type(error).__mro__}
        ):
            return []  # caught by the same `except`
        got = type(error).__name__ if error else "no exception"
        return [f"exception: {got} {error}, recorded {wanted}"]
    found = []
    if isinstance(value, util.EvaluationResult) and "metrics" in record:
        found += result_differences(record, value)
    elif "output" in record:
        found += output_differences(record, record["output"], value)
    if record["status"] != "pipeline_error":
        for role in replay.wanted:
            for key in replay.empty & replay.sent[role].keys():
                replay.sent[role][key] = min(
                    replay.sent[role][key], replay.wanted[role][key]
                )
            if role == "reward":  # an equal reply to the same row is rewarded once
                replay.wanted[role] = Counter(set(replay.wanted[role]))
                replay.sent[role] = Counter(set(replay.sent[role]))
            if replay.wanted[role] != replay.sent[role]:
                lost = replay.wanted[role] - replay.sent[role]
                more = replay.sent[role] - replay.wanted[role]
                found.append(
                    f"prompts to {role}: {sum(lost.values())} not sent {_head(lost)}, {sum(more.values())} more {_head(more)}"
                )
    return found


def _head(counter: Counter[str]) -> str:
    return next(iter(counter), "")[-160:]


def result_differences(record: Record, value: util.EvaluationResult) -> list[str]:
    """Of metrics, info and samples."""
    wanted: Mapping[str, Any] = record["metrics"] or {}
    if "pipeline_error" in wanted:
        failed = "pipeline_error" in value.metrics
        return (
            []
            if failed
            else [
                f"recorded an error ({wanted['pipeline_error']}), ours {value.metrics}"
            ]
        )
    found = []
    unstable = record.get("language_penalizer_unstable_rows")
    for name in {*wanted, *value.metrics}:
        if name == "language_penalizer_average" and (unstable or not HAS_LANGDETECT):
            continue
        if (
            difference := first_difference(wanted.get(name), value.metrics.get(name))
        ) is not None:
            found.append(f"metric {name}{difference}")
    found += [
        f"info {key}: {value.info.get(key)!r}, recorded {record['info'][key]!r}"
        for key in INFO_KEYS
        if key in record["info"] and record["info"][key] != value.info.get(key)
    ]
    if "pipeline_error" in value.metrics:
        return found
    samples = _plain(value.samples)
    if len(samples) != len(record["samples"]):
        return [*found, f"{len(samples)} samples, recorded {len(record['samples'])}"]
    by_place = {canonical(one.get("input")): one for one in samples}
    same = [one.get("input") for one in samples] == [
        one.get("input") for one in record["samples"]
    ]
    for place, one in enumerate(record["samples"]):
        ours = samples[place] if same else by_place.get(canonical(one.get("input")), {})
        if more := ours.keys() - one.keys():
            found.append(f"sample {place} has more: {sorted(more)}")
        for key, expected in one.items():
            shaky = not HAS_LANGDETECT or str(place) in map(str, unstable or ())
            if key == "language_penalizer" and shaky:
                continue
            if key == "error" and bool(expected) == bool(ours.get(key)):
                continue  # the words are ours
            if (difference := first_difference(expected, ours.get(key))) is not None:
                found.append(f"sample {place} {key}{difference}")
    return found


def first_difference(wanted: Any, got: Any, at: str = "") -> str | None:
    """Where two values differ, and how; None where they are equal."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key in {*wanted, *got} - {"description"}:
            if (
                found := first_difference(wanted.get(key), got.get(key), f"{at}.{key}")
            ) is not None:
                return found
        return None
    if isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        for n, (a, b) in enumerate(zip(wanted, got, strict=True)):
            if (found := first_difference(a, b, f"{at}[{n}]")) is not None:
                return found
        return None
    if isinstance(wanted, float) and isinstance(got, int | float):
        return (
            None
            if abs(wanted - got) <= 1e-9 * max(1, abs(wanted))
            else f"{at}: {got}, recorded {wanted}"
        )
    return (
        None
        if wanted == got
        else f"{at}: {str(got)[:150]!r}, recorded {str(wanted)[:150]!r}"
    )


def _plain(value: Any) -> Any:
    """As the record has it."""
    if isinstance(value, util.EvaluationResult):
        return _plain(value.to_dict())
    if isinstance(value, Mapping):
        return {
            str(getattr(key, "value", key)): _plain(one) for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, str | int | float) or value is None:
        return value
    return str(value)
