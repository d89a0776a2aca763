"""The onnx backend on real files: random decoders of several kinds, against plain one-by-one
computation and torch.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalwright.core.errors import (
    ConfigurationError,
    EvalwrightError,
    Failure,
    UnknownName,
)
from evalwright.core.requests import (
    Embed,
    Generate,
    LogLikelihood,
    Message,
    Request,
    RollingLogLikelihood,
)
from evalwright.core.responses import Response
from evalwright.models.local.onnx.decode import log_likelihood
from evalwright.models.local.onnx.onnx_model import OnnxModel
from evalwright.models.local.onnx.session import Sharing
from evalwright.models.local.tokens import rolling_pairs
from evalwright.models.registry import open_model
from support.local_models import answers as answers_of
from support.tiny_models import byte_level_bpe

onnx = pytest.importorskip("onnx")

ROOT = Path(__file__).parents[4]
WORDS = "the river runs past an old mill and down to a grey sea where boats wait for wind".split()  # noqa: SIM905
SHOTS = "Read the questions and answer each in a word. " * 8
CHAT = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exported decoder with random weights, its tokenizer and configuration."""
    return make_folder(tmp_path_factory.mktemp("decoder"))


def make_folder(folder: Path, *, seed: int = 0, chat: str | None = None) -> Path:
    """Write model.onnx (two layers, cache), config.json, tokenizer.json and
    tokenizer_config.json.
    """
    tokenizer = byte_level_bpe(["<|end|>"], vocab=300, texts=[" ".join(WORDS), SHOTS])
    tokenizer.save(str(folder / "tokenizer.json"))
    write_model(folder / "model.onnx", tokenizer.get_vocab_size(), seed)
    (folder / "config.json").write_text(
        json.dumps({"max_position_embeddings": 256, "eos_token_id": 0})
    )
    settings = {"bos_token": "<|end|>", "eos_token": {"content": "<|end|>"}}
    if chat:
        settings["chat_template"] = chat
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def write_model(path: Path, vocabulary: int, seed: int) -> None:
    """A random decoder whose answers vary with its input."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        from scripts.demo_models.graph import export
        from scripts.demo_models.shape import Shape
    random = np.random.default_rng(seed)
    shape = Shape(vocabulary, width=32, layers=2, heads=2, inner=48, context=256)
    weights = {
        "embedding.weight": random.normal(0, 0.3, (vocabulary, 32)),
        "norm.weight": np.ones(32),
    }
    for layer in range(2):
        sizes = {
            "query": (32, 32),
            "key": (32, 32),
            "value": (32, 32),
            "output": (32, 32),
        }
        sizes |= {"gate": (48, 32), "up": (48, 32), "down": (32, 48)}
        for name, size in sizes.items():
            weights[f"layers.{layer}.{name}.weight"] = random.normal(0, 0.3, size)
        for name in ("attention_norm", "inner_norm"):
            weights[f"layers.{layer}.{name}.weight"] = np.ones(32)
    export(
        shape, {name: array.astype(np.float32) for name, array in weights.items()}, path
    )


def ask(model: OnnxModel, *requests: Request) -> list[Response | Failure]:
    """All answers in order."""
    return answers_of(model, requests)


def parts(model: OnnxModel) -> Any:
    """The loaded tokenizer and decoder."""
    model.load()
    return model._open


def good(answers: list[Response | Failure]) -> list[Response]:
    """The answers, none of which failed."""
    assert all(isinstance(answer, Response) for answer in answers), answers
    return [answer for answer in answers if isinstance(answer, Response)]


def sentence(random: np.random.Generator, most: int = 12) -> str:
    """A few random words."""
    return " ".join(random.choice(WORDS, random.integers(1, most)))


def likelihood_requests() -> list[Request]:
    """Options behind shared shots, letters of one question, a context of its own, an empty one,
    a repeated request.
    """
    random = np.random.default_rng(3)
    requests: list[Request] = []
    for _ in range(6):
        context = SHOTS + sentence(random) + " is"
        requests += [
            LogLikelihood(context, " " + sentence(random, 5)) for _ in range(4)
        ]
        requests += [LogLikelihood(context, f" {letter}") for letter in "ABCD"]
    requests += [
        LogLikelihood(sentence(random), " " + sentence(random)) for _ in range(5)
    ]
    requests += [LogLikelihood("", "the river"), requests[0]]
    return requests


def reference(model: OnnxModel, request: LogLikelihood) -> tuple[float, bool]:
    """One forward of the whole sequence, a log-softmax in float64, and nothing shared with any
    other request.
    """
    (context, continuation) = parts(model)._pair(request)[0]
    tokens = [*context, *continuation[:-1]]
    decoder = parts(model).decoder
    logits, _ = decoder.run_row(tokens, 0, decoder.empty_cache(1))
    tail = logits[len(context) - 1 :].astype(np.float64)
    logs = (
        tail
        - np.log(np.exp(tail - tail.max(-1, keepdims=True)).sum(-1, keepdims=True))
        - tail.max(-1, keepdims=True)
    )
    picked = logs[np.arange(len(continuation)), continuation]
    return float(picked.sum()), bool((tail.argmax(-1) == continuation).all())


def test_log_likelihoods_equal_one_by_one(folder: Path) -> None:
    model = OnnxModel(str(folder), batch_size=5)
    requests = likelihood_requests()
    answers = good(ask(model, *requests))
    assert parts(model).decoder.sharing is Sharing.RAGGED
    for request, answer in zip(requests, answers, strict=True):
        assert isinstance(request, LogLikelihood)
        value, greedy = reference(model, request)
        assert answer.log_likelihood == pytest.approx(value, abs=2e-4)
        assert answer.is_greedy == greedy
        assert answer.tokens_scored and value < 0


def greedy_tokens(model: OnnxModel, prompt: str, count: int) -> list[int]:
    """The most probable tokens, each from a forward of everything before it."""
    tokens = parts(model).tokenizer.encode(prompt, True)
    start = len(tokens)
    decoder = parts(model).decoder
    while len(tokens) < start + count:
        logits, _ = decoder.run_row(tokens, 0, decoder.empty_cache(1))
        tokens.append(int(logits[-1].argmax()))
    return list(tokens[start:])


def test_rolling_is_the_sum_over_windows(folder: Path) -> None:
    random = np.random.default_rng(5)
    text = " ".join(random.choice(WORDS, 300))
    whole, short, empty = good(
        ask(
            OnnxModel(str(folder)),
            RollingLogLikelihood(text),
            RollingLogLikelihood("sea"),
            RollingLogLikelihood(""),
        )
    )
    model = OnnxModel(str(folder))
    pairs = rolling_pairs(parts(model).tokenizer, parts(model).rules, text)
    assert len(pairs) > 1
    assert whole.tokens_scored == len(parts(model).tokenizer.encode(text, False))
    decoder = parts(model).decoder
    expected = 0.0
    for context, continuation in pairs:
        logits, _ = decoder.run_row(
            [*context, *continuation[:-1]], 0, decoder.empty_cache(1)
        )
        expected += log_likelihood(logits[len(context) - 1 :], continuation)[0].sum()
    assert whole.log_likelihood == pytest.approx(expected, abs=1e-3)
    assert short.log_likelihood is not None and short.log_likelihood < 0
    assert (empty.log_likelihood, empty.tokens_scored) == (0.0, 0)


def generate_requests(**options: Any) -> list[Request]:
    """Prompts of many lengths, some behind shared shots."""
    random = np.random.default_rng(7)
    prompts = (
        [SHOTS + sentence(random) for _ in range(8)]
        + [sentence(random) for _ in range(8)]
        + ["", "sea"]
    )
    return [Generate(prompt, max_tokens=12, **options) for prompt in prompts]


def test_generation_equals_recomputing_every_token_one_by_one(folder: Path) -> None:
    requests = generate_requests()
    together = good(ask(OnnxModel(str(folder), batch_size=7), *requests))
    alone = OnnxModel(str(folder), batch_size=1)
    for request, answer in zip(requests, together, strict=True):
        (single,) = good(ask(alone, request))
        assert (answer.text, answer.finish_reason, answer.usage) == (
            single.text,
            single.finish_reason,
            single.usage,
        )
        assert 0 < answer.usage.output_tokens <= 12
    assert len({answer.text for answer in together}) > 5
    prompt = getattr(requests[0], "prompt", "")
    written = greedy_tokens(alone, prompt, 12)
    written = written[: written.index(0)] if 0 in written else written
    assert together[0].text == parts(alone).tokenizer.decode(written, True)


def test_sampling_depends_on_prompt_seed_and_draw_alone(folder: Path) -> None:
    model = OnnxModel(str(folder))
    options: dict[str, Any] = {"max_tokens": 8, "temperature": 1.0, "seed": 4}
    requests = [
        Generate(prompt, draw=draw, **options)
        for prompt in ("the", "sea")
        for draw in range(6)
    ]
    answers = [answer.text for answer in good(ask(model, *requests))]
    backwards = [answer.text for answer in good(ask(model, *reversed(requests)))]
    assert answers == backwards[::-1]
    assert len(set(answers)) > 6
    (other,) = good(ask(model, Generate("the", max_tokens=8, temperature=1.0, seed=5)))
    assert other.text != answers[0]
    (greedy,) = good(ask(model, Generate("the", max_tokens=8)))
    (narrow,) = good(
        ask(model, Generate("the", max_tokens=8, temperature=1.0, top_p=1e-9))
    )
    assert narrow.text == greedy.text


def test_sampled_frequencies_follow_the_softmax(folder: Path) -> None:
    model = OnnxModel(str(folder))
    requests = [
        Generate("the mill", max_tokens=1, temperature=0.7, draw=draw)
        for draw in range(600)
    ]
    texts = [answer.text for answer in good(ask(model, *requests))]
    decoder = parts(model).decoder
    logits, _ = decoder.run_row(
        parts(model).tokenizer.encode("the mill", True), 0, decoder.empty_cache(1)
    )
    scaled = logits[-1].astype(np.float64) / 0.7
    chances = np.exp(scaled - scaled.max())
    chances /= chances.sum()
    best = int(chances.argmax())
    share = texts.count(parts(model).tokenizer.decode([best], True)) / len(texts)
    assert abs(share - chances[best]) < 5 * math.sqrt(
        chances[best] * (1 - chances[best]) / len(texts)
    )


def test_stop_strings_end_rows_and_are_cut(folder: Path) -> None:
    model = OnnxModel(str(folder))
    (free,) = good(ask(model, Generate("the old mill", max_tokens=20)))
    stop = free.text[5:7]
    (stopped, other) = good(
        ask(
            model,
            Generate("the old mill", max_tokens=20, stop=(stop,)),
            Generate("the old mill", max_tokens=20),
        )
    )
    assert stopped.text == free.text[: free.text.find(stop)]
    assert stopped.finish_reason == "stop"
    assert stopped.usage.output_tokens < other.usage.output_tokens
    assert other.text == free.text and other.finish_reason == "length"


def test_every_end_token_of_the_configuration_ends_an_answer(
    folder: Path, tmp_path: Path
) -> None:
    written = greedy_tokens(OnnxModel(str(folder)), "the", 20)
    made = make_folder(tmp_path)
    (made / "generation_config.json").write_text(
        json.dumps({"eos_token_id": [0, written[3]]})
    )
    model = OnnxModel(str(made))
    (ended,) = good(ask(model, Generate("the", max_tokens=20)))
    assert ended.finish_reason == "stop"
    assert ended.text == parts(model).tokenizer.decode(
        written[: written.index(written[3])], True
    )


def test_chat_template_renders_messages(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, chat=CHAT)
    model = OnnxModel(str(folder))
    assert "chat" in model.abilities
    messages = (Message("system", "be brief"), Message("user", "the sea"))
    text = "<|system|>be brief<|end|><|user|>the sea<|end|><|assistant|>"
    prefill = (*messages, Message("assistant", "an old"))
    answers = good(
        ask(
            model,
            Generate(messages, max_tokens=8),
            Generate(text, max_tokens=8),
            Generate(prefill, max_tokens=8),
            Generate(text + "an old", max_tokens=8),
            LogLikelihood(messages, " mill"),
            LogLikelihood(text, " mill"),
        )
    )
    assert answers[0].text == answers[1].text
    assert answers[2].text == answers[3].text
    assert answers[4].log_likelihood == pytest.approx(
        answers[5].log_likelihood, abs=1e-5
    )
    plain = OnnxModel(str(folder), chat_template=False)
    assert "chat" not in plain.abilities
    (refused,) = ask(plain, Generate(messages))
    assert isinstance(refused, Failure) and "chat template" in refused.message
    assert plain.fingerprint != model.fingerprint


def test_what_cannot_be_asked_fails_alone_and_a_cut_context_says_so(
    tmp_path: Path,
) -> None:
    template = "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}hello"
    model = OnnxModel(str(make_folder(tmp_path)), chat_template=template)
    *failed, answered, whole, cut = ask(
        model,
        Generate((Message("system", "x"), Message("user", "y"))),
        Embed("x"),
        Generate("sea " * 400),
        LogLikelihood("a", ""),
        Generate((Message("user", "y"),), max_tokens=2),
        LogLikelihood("sea", " sun"),
        LogLikelihood("sea" + " sea" * 400, " sun"),
    )
    for answer, words in zip(
        failed, ("no system role", "embed", "no room", "empty"), strict=True
    ):
        assert (
            isinstance(answer, Failure)
            and words in answer.message
            and not answer.retryable
        )
    _, whole, cut = good([answered, whole, cut])
    assert (whole.finish_reason, cut.finish_reason) == ("", "truncated")
    assert cut.tokens_scored == whole.tokens_scored


def without_cache(source: Path, target: Path) -> None:
    """The same decoder without cache inputs and outputs, as many exports are."""
    model = onnx.load(str(source / "model.onnx"))
    graph = model.graph
    for entry in list(graph.input):
        if entry.name.startswith("past_key_values"):
            shape = [
                1,
                *(axis.dim_value for axis in entry.type.tensor_type.shape.dim[1:]),
            ]
            graph.input.remove(entry)
            graph.initializer.append(
                onnx.numpy_helper.from_array(
                    np.zeros(shape, np.float32), f"{entry.name}.one"
                )
            )
            batch = f"{entry.name}.batch"
            graph.node.insert(
                0,
                onnx.helper.make_node(
                    "Expand", [f"{entry.name}.one", batch], [entry.name]
                ),
            )
            sizes = [f"{batch}.rows", f"{batch}.rest"]
            rest = np.array(shape[1:], np.int64)
            graph.initializer.append(onnx.numpy_helper.from_array(rest, sizes[1]))
            graph.node.insert(
                0, onnx.helper.make_node("Concat", sizes, [batch], axis=0)
            )
            graph.node.insert(
                0,
                onnx.helper.make_node(
                    "Shape", ["input_ids"], [sizes[0]], start=0, end=1
                ),
            )
    for entry in list(graph.output):
        if entry.name.startswith("present"):
            graph.output.remove(entry)
    onnx.save_model(model, str(target / "model.onnx"))


def test_a_file_without_cache_answers_the_same(folder: Path, tmp_path: Path) -> None:
    made = make_folder(tmp_path)
    without_cache(folder, made)
    with_cache = OnnxModel(str(folder))
    plain = OnnxModel(str(made), batch_size=6)
    requests = [*likelihood_requests(), *generate_requests()]
    expected = good(ask(with_cache, *requests))
    answers = good(ask(plain, *requests))
    assert not parts(plain).decoder.has_cache
    for left, right in zip(expected, answers, strict=True):
        assert left.text == right.text
        if left.log_likelihood is not None:
            assert right.log_likelihood == pytest.approx(left.log_likelihood, abs=2e-4)
    assert plain.fingerprint != with_cache.fingerprint


def quantise(source: Path, target: Path) -> None:
    """Eight-bit weights, with activations quantised on the fly over the whole batch, as many
    published exports have.
    """
    quantization = pytest.importorskip("onnxruntime.quantization")
    model = onnx.load(str(source))
    weights = {
        entry.name: onnx.numpy_helper.to_array(entry)
        for entry in model.graph.initializer
    }
    for node in [
        node
        for node in model.graph.node
        if node.op_type == "Cast" and node.input[0] in weights
    ]:
        full = weights[node.input[0]].astype(np.float32)
        model.graph.initializer.append(
            onnx.numpy_helper.from_array(full, node.output[0])
        )
        model.graph.node.remove(node)
    onnx.save_model(model, str(target))
    quantization.quantize_dynamic(str(target), str(target))


def test_a_quantised_file_gives_the_same_numbers_in_any_company(
    folder: Path, tmp_path: Path
) -> None:
    made = make_folder(tmp_path)
    quantise(folder / "model.onnx", made / "model.onnx")
    model = OnnxModel(str(made))
    requests = [*likelihood_requests()[:10], *generate_requests()[:6]]
    together = good(ask(model, *requests))
    assert parts(model).decoder.sharing is Sharing.SINGLE
    for request, answer in zip(requests, together, strict=True):
        (alone,) = good(ask(model, request))
        assert alone.text == answer.text
        if answer.log_likelihood is not None:
            assert alone.log_likelihood == pytest.approx(
                answer.log_likelihood, abs=1e-5
            )


@pytest.mark.parametrize("sharing", list(Sharing))
def test_every_way_of_sharing_gives_the_same_answers(
    folder: Path, sharing: Sharing
) -> None:
    requests = [*likelihood_requests(), *generate_requests()]
    usual = OnnxModel(str(folder))
    limited = OnnxModel(str(folder))
    parts(limited).decoder.sharing = sharing
    for left, right in zip(
        good(ask(usual, *requests)), good(ask(limited, *requests)), strict=True
    ):
        assert left.text == right.text
        if left.log_likelihood is not None:
            assert right.log_likelihood == pytest.approx(left.log_likelihood, abs=2e-4)


BROKEN: list[tuple[Callable[[Path], Any], str, dict[str, Any]]] = [
    (lambda folder: folder.rename(folder.with_name("gone")), "There is no folder", {}),
    (lambda folder: (folder / "model.onnx").unlink(), "has no .onnx file", {}),
    (lambda folder: (folder / "tokenizer.json").unlink(), "has no tokenizer.json", {}),
    (lambda folder: None, "Unknown file", {"file": "modle.onnx"}),
    (
        lambda folder: (folder / "config.json").write_text("{"),
        "cannot be read as JSON",
        {},
    ),
    (
        lambda folder: (folder / "config.json").write_text("[]"),
        "is not a JSON object",
        {},
    ),
    (
        lambda folder: [
            (folder / "model.onnx").rename(folder / "a.onnx"),
            (folder / "b.onnx").write_bytes(b""),
        ],
        "several models",
        {},
    ),
    (lambda folder: None, "threads must be", {"threads": -1}),
    (lambda folder: None, "max_length must be", {"max_length": "many"}),
    (
        lambda folder: None,
        "There is no chat template file",
        {"chat_template": "none.jinja"},
    ),
    (
        lambda folder: None,
        "The chat template cannot be read",
        {"chat_template": "{% if %}"},
    ),
    (
        lambda folder: (folder / "model.onnx").write_bytes(b"not a model"),
        "onnxruntime cannot open",
        {},
    ),
    (
        lambda folder: (folder / "tokenizer.json").write_text("{}"),
        "is not a tokenizer file",
        {},
    ),
    (
        lambda folder: write_adder(folder / "model.onnx", ["a", "b"]),
        "is not a decoder model",
        {},
    ),
    (
        lambda folder: write_adder(
            folder / "model.onnx", ["input_ids", "beam_idx"], output="logits"
        ),
        "needs the input 'beam_idx'",
        {},
    ),
]


@pytest.mark.parametrize(
    ("spoil", "message", "arguments"), BROKEN, ids=[row[1] for row in BROKEN]
)
def test_bad_folders_are_named_in_a_sentence(
    tmp_path: Path,
    spoil: Callable[[Path], Any],
    message: str,
    arguments: dict[str, Any],
) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    spoil(make_folder(folder))
    with pytest.raises((ConfigurationError, UnknownName), match=message) as caught:
        OnnxModel(str(folder), **arguments).check()
    assert isinstance(caught.value, EvalwrightError) and "\n" not in str(caught.value)


def write_adder(path: Path, inputs: list[str], output: str = "sum") -> None:
    """A graph that adds two numbers."""
    helper = onnx.helper
    kind = onnx.TensorProto.FLOAT
    entries = [helper.make_tensor_value_info(name, kind, [1]) for name in inputs]
    graph = helper.make_graph(
        [helper.make_node("Add", inputs, [output])],
        "adder",
        entries,
        [helper.make_tensor_value_info(output, kind, [1])],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save_model(
        helper.make_model(graph, opset_imports=opsets, ir_version=8), str(path)
    )


def test_the_fingerprint_is_the_content(folder: Path, tmp_path: Path) -> None:
    same = tmp_path / "same"
    other = tmp_path / "other"
    same.mkdir()
    other.mkdir()
    make_folder(same)
    make_folder(other, seed=1)
    base = OnnxModel(str(folder)).fingerprint
    assert OnnxModel(str(same)).fingerprint == base
    assert OnnxModel(str(same), threads=1, batch_size=3).fingerprint == base
    assert OnnxModel(str(other)).fingerprint != base
    assert OnnxModel(str(same), max_length=100).fingerprint != base
    (same / "generation_config.json").write_text('{"eos_token_id": 3}')
    assert OnnxModel(str(same)).fingerprint != base


def test_an_onnx_folder_inside_and_a_named_file(folder: Path, tmp_path: Path) -> None:
    made = make_folder(tmp_path)
    (made / "onnx").mkdir()
    (made / "model.onnx").rename(made / "onnx" / "model.onnx")
    model = open_model(f"onnx/{made}")
    assert model.name == f"onnx/{made}"
    assert isinstance(model, OnnxModel) and not model.heavy and model.max_length == 256
    (made / "onnx" / "model_int8.onnx").write_bytes(
        (made / "onnx" / "model.onnx").read_bytes()
    )
    assert (
        OnnxModel(str(made), file="onnx/model_int8.onnx").fingerprint
        == model.fingerprint
    )
    (before,) = good(ask(model, Generate("the", max_tokens=4)))
    model.unload()
    assert model._open is None
    assert good(ask(model, Generate("the", max_tokens=4)))[0].text == before.text
    description = json.loads(json.dumps(model.describe()))
    assert description["bytes"] == (made / "onnx" / "model.onnx").stat().st_size


def test_samplers_and_log_probabilities(folder: Path) -> None:
    """top_k and min_p keep what they say; values are those of one forward; the checkpoint's own
    sampling where it is left to it.
    """
    model = OnnxModel(str(folder))
    (greedy,) = good(ask(model, Generate("the river", max_tokens=8, top_logprobs=2)))
    assert "".join(token.text for token in greedy.tokens) == greedy.text
    assert all(token.alternatives[0][1] == token.log_prob for token in greedy.tokens)
    summed = 0
    for word in WORDS:
        (found,) = good(ask(model, Generate(word, max_tokens=2, top_logprobs=0)))
        if not found.text.strip():
            continue
        whole = good(ask(model, LogLikelihood(word, found.text)))[0]
        if whole.tokens_scored == len(found.tokens) and whole.is_greedy:
            summed += 1
            value = sum(token.log_prob for token in found.tokens)
            assert value == pytest.approx(whole.log_likelihood, abs=1e-4)
    assert summed
    narrow: list[dict[str, Any]] = [{"top_k": 1}, {"min_p": 1.0}]
    for how in narrow:
        drawn = [
            Generate("the river", max_tokens=8, temperature=3.0, seed=n, draw=n, **how)
            for n in range(3)
        ]
        assert {each.text for each in good(ask(model, *drawn))} == {greedy.text}
    wide = [
        Generate("the river", max_tokens=8, temperature=3.0, seed=n, draw=n)
        for n in range(3)
    ]
    assert len({each.text for each in good(ask(model, *wide))}) == 3
    own = [
        Generate("the river", max_tokens=8, temperature=None, seed=n, draw=n)
        for n in range(3)
    ]
    assert {each.text for each in good(ask(model, *own))} == {greedy.text}
    refused = model.refuses(Generate("x", num_beams=2))
    assert (
        refused is not None
        and "does not take num_beams (it takes: min_p, top_k, top_logprobs)" in refused
    )
