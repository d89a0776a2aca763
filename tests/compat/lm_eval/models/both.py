"""One script for both packages: random inputs through the helpers and base classes of a root,
results as JSON.

    python both.py ROOT FOLDER WHAT

ROOT is `lm_eval` or `evalwright.compat.lm_eval`; the inputs depend on nothing but the seed.
"""

from __future__ import annotations

import json
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

PIECES = (
    "the river", "The", " a", "  ", " ", "\n", "\n\n", "\t", "Question:", " Answer", "Paris", "pari", "s", "1538", "19", " 99", "é", "Ł",
    "東京", "東", "京は", "Москва", "🙂", "👩‍🚀", "\u00a0", "\u3000", "-", "'s", "n't", "<s>", "</s>", "<|im_start|>", "ab", "bc", "cab",
    "don", "'", "t", ".", ",", "...", "def double", "(number)", "", "ice", "iceice", "𝔘", "a\u0301",
)  # fmt: skip


def texts(dice: random.Random) -> Iterator[tuple[str, str]]:
    """Contexts and continuations, half of them one text that is cut anywhere."""
    while True:
        whole = "".join(dice.choices(PIECES, k=dice.randint(1, 9)))
        if dice.random() < 0.5:
            place = dice.randint(0, len(whole))
            yield whole[:place], whole[place:]
        else:
            yield whole, "".join(dice.choices(PIECES, k=dice.randint(1, 4)))


def outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    """What a call gives, or that it is refused."""
    try:
        return call(*arguments)
    except Exception as error:
        return {
            "refused": type(error).__name__
            in ("AssertionError", "ValueError", "IndexError", "KeyError")
        }


def rolling(utils: Any, tokens: list[int], longest: int, context: int) -> Any:
    return list(utils.get_rolling_token_windows(tokens, -1, longest, context))


def normalised(utils: Any, given: dict[str, Any]) -> Any:
    return sorted(utils.normalize_gen_kwargs(given, 9).items())


def pairs(root: str, folder: Path) -> Any:
    """Pairs through TemplateLM with each tokenizer: special tokens or not, decoder or
    encoder-decoder.
    """
    from tokenizers import Tokenizer

    base = import_module(f"{root}.api.model").TemplateLM
    instance = import_module(f"{root}.api.instance").Instance

    class Given(base):  # type: ignore[misc, valid-type]
        def __init__(
            self, tokenizer: Any, special: bool, backend: str, prefix: int
        ) -> None:
            super().__init__()
            self.own = tokenizer
            self.special = special
            self.backend = backend
            self.prefix = prefix

        @property
        def eot_token_id(self) -> int:
            return self.prefix

        def tok_encode(
            self, string: str, add_special_tokens: bool | None = None, **more: Any
        ) -> list[int]:
            wish = self.special if add_special_tokens is None else add_special_tokens
            return list(self.own.encode(string, add_special_tokens=wish).ids)

        def _loglikelihood_tokens(self, requests: Any, **more: Any) -> Any:
            return [
                [strings, list(context), list(rest)]
                for strings, context, rest in requests
            ]

        def loglikelihood_rolling(
            self, requests: Any, disable_tqdm: bool = False
        ) -> Any: ...

        def generate_until(self, requests: Any, disable_tqdm: bool = False) -> Any: ...

    out = []
    dice = random.Random(18)
    for file in sorted(folder.glob("*.json")):
        tokenizer = Tokenizer.from_file(str(file))
        for special in (False, True):
            for backend in ("causal", "seq2seq"):
                lm = Given(tokenizer, special, backend, 1)
                for (context, rest), _ in zip(texts(dice), range(400), strict=False):
                    request = instance("loglikelihood", {}, (context, rest), 0)
                    # of no tokens theirs has an index error
                    if context or lm.tok_encode(rest, False):
                        out.append(outcome(lm.loglikelihood, [request], True))
                    out.append(outcome(lm._encode_pair, context, rest))
    return out


def windows(root: str, folder: Path) -> Any:
    """Rolling windows of random lengths, wrong ones too."""
    utils = import_module(f"{root}.utils")
    dice = random.Random(19)
    out = []
    for _ in range(3000):
        tokens = dice.choices(range(9), k=dice.randint(0, 40))
        longest = dice.randint(1, 12)
        context = dice.randint(0, 13)
        found = outcome(rolling, utils, tokens, longest, context)
        out.append(found)
        if isinstance(found, list):
            out.append([utils.make_disjoint_window(window) for window in found])
    out += [
        utils.handle_arg_string(text)
        for text in (
            "1",
            "-1",
            "+2",
            "1e3",
            "0x1",
            "²",
            "True",
            "none",
            "'1'",
            " x ",
            "",
            "inf",
            "1_000",
        )
    ]
    out.append(utils.simple_parse_args_string(" a=1,b=x=y,,c=false "))
    return json.loads(json.dumps(out).replace("Infinity", '"inf"'))


def collators(root: str, folder: Path) -> Any:
    """Collators over random requests: batches in order, shared logits, results back in place."""
    import torch

    collator = import_module(f"{root}.models.utils").Collator
    dice = random.Random(20)
    out: list[Any] = []
    for number in range(600):
        size = dice.randint(0, 25)
        fixed = dice.randint(0, 6)
        batch_fn = (lambda place, items: 1 + place % 3) if number % 5 == 0 else None
        if number % 3 == 0:
            settings = [
                {"until": ["\n"], "temperature": 0.5},
                {"until": ["a", "b"]},
                {"max_gen_toks": 3, "do_sample": False},
            ]
            items: list[Any] = [
                ("x" * dice.randint(0, 5) + str(i), dice.choice(settings))
                for i in range(size)
            ]
            order = collator(items, lambda one: -len(one[0]), group_by="gen_kwargs")
            batches = list(order.get_batched(n=fixed, batch_fn=batch_fn))
            out.append(
                [
                    len(order),
                    batches,
                    order.get_original([one for batch in batches for one in batch])
                    == items,
                ]
            )
            continue
        pairs: list[Any] = []
        for place in range(size):
            whole = dice.choices(range(3), k=dice.randint(2, 5))
            cut = dice.randint(1, len(whole) - 1)
            pairs.append(((str(place), "y"), whole[:cut], whole[cut:]))
        contexts = number % 3 == 1
        order = collator(
            pairs, lambda one: (-len(one[1] + one[2]), tuple(one[1] + one[2])), lambda one: one[1] + one[2][:-1],
            "contexts" if contexts else None,
        )  # fmt: skip
        batches = []
        results: list[Any] = []
        for batch in order.get_batched(n=fixed, batch_fn=batch_fn):
            batches.append([one[0] for one in batch])
            for name, context, rest in batch:
                logits = torch.full((1, len(rest), 2), float(len(results)))
                for found, tokens, one in order.get_cache(name, context, rest, logits):
                    results.append([found, tokens, list(one.shape), float(one.sum())])
        out.append([len(order), batches, results, order.get_original(results)])
    return out


def helpers(root: str, folder: Path) -> Any:
    """The smaller helpers on random inputs."""
    utils = import_module(f"{root}.models.utils")
    old = import_module(f"{root}.utils")
    dice = random.Random(21)
    out: list[Any] = []
    for _ in range(1500):
        until = dice.choice([None, "x", ["x", "</s>"], [], "</s>", 3, ("x",)])
        eos = dice.choice([None, "</s>"])
        out.append(outcome(utils.handle_stop_sequences, until, eos))
        given: dict[str, Any] = (
            {"until": dice.choice(["a", ["a"], []])} if dice.random() < 0.8 else {}
        )
        for name in (
            "max_gen_toks",
            "max_new_tokens",
            "max_tokens",
            "max_completion_tokens",
        ):
            if dice.random() < 0.3:
                given[name] = dice.choice([None, 5, "7"])
        if dice.random() < 0.7:
            given["do_sample"] = dice.choice([True, False, None])
        if dice.random() < 0.7:
            given["temperature"] = dice.choice([0, 0.0, 0.7, 1])
        out.append(outcome(normalised, utils, given))
        tokens = list(range(dice.randint(0, 12)))
        most = dice.randint(0, 9)
        longest = dice.randint(1, 14)
        least = dice.randint(1, 3)
        side = dice.choice(["left", "middle", "right"])
        shrink = dice.random() < 0.5
        out.append(
            outcome(
                utils.maybe_truncate, tokens, most, longest, least, side, shrink, False
            )
        )
        text = "".join(
            dice.choices(
                ["a", "b", "</think>", " ", "\n\n", "stop"], k=dice.randint(0, 8)
            )
        )
        stop = dice.choice([None, "stop", ["", "\n\n"], ["b", "stop"]])
        out.append(
            utils.postprocess_generated_text(
                text, stop, dice.choice([None, "</think>"])
            )
        )
        out.append(utils.has_bos_prefix(text, dice.choice([None, "a", ["b", "stop"]])))
        image = dice.choice(["b", "stop", "<i>"])
        most_images = dice.randint(0, 3)
        out.append(
            utils.replace_placeholders(
                text, dice.choice(["b", "stop"]), image, most_images
            )
        )
        rows = [
            dice.choices(range(5), k=dice.randint(0, 3))
            for _ in range(dice.randint(0, 4))
        ]
        out.append(utils.undistribute(rows))
        numbers = dice.choices(range(4), k=dice.randint(0, 9))
        order = old.Reorderer(numbers, lambda one: -one)
        out.append(
            [
                order.get_reordered(),
                order.get_original([one * 10 for one in order.get_reordered()]),
            ]
        )
        out.append(list(utils.chunks(numbers, dice.randint(0, 3))))
    model = import_module(f"{root}.api.model")
    out += [
        model.hash_args("loglikelihood", ("a", "b")),
        model.hash_args("generate_until", ("é", {"until": ["\n"]})),
        model.hash_args("x", (b"1",)),
    ]
    return out


def transformer(root: str, folder: Path) -> Any:
    """HFLM on small transformers: every kind of request, several settings."""
    hflm = import_module(f"{root}.models.huggingface").HFLM
    instance = import_module(f"{root}.api.instance").Instance
    dice = random.Random(22)
    out: list[Any] = []
    for model in sorted(folder.iterdir()):
        for more in (
            {},
            {"batch_size": 7, "logits_cache": False},
            {"batch_size": 4, "max_length": 24, "add_bos_token": True},
        ):
            lm = hflm(pretrained=str(model), device="cpu", dtype="float32", **more)
            found = [
                (context, rest) for (context, rest), _ in zip(texts(dice), range(24), strict=False)
                if rest.strip() and (not context or context.strip()) and len(lm.tok_encode(rest, add_special_tokens=False)) < 20
            ]  # fmt: skip
            usable = [
                pair
                for pair in found
                if not pair[0] or all(map(len, lm._encode_pair(*pair)))
            ]
            pairs = [
                instance("loglikelihood", {}, pair, place)
                for place, pair in enumerate(usable)
            ]
            out += [
                [round(value, 3), greedy]
                for value, greedy in lm.loglikelihood(pairs, disable_tqdm=True)
            ]
            if lm.backend == "causal":
                rolling = [
                    instance("loglikelihood_rolling", {}, (a + b,), 0) for a, b in found
                ]
                out += [
                    round(value, 3)
                    for value in lm.loglikelihood_rolling(rolling, disable_tqdm=True)
                ]
            prompts = [
                instance("generate_until", {}, (a, {"until": dice.choice([["\n"], [" "], ["e", "."]]), "max_gen_toks": 6}), 0)
                for a, _ in found if a.strip()
            ]  # fmt: skip
            out += lm.generate_until(prompts, disable_tqdm=True)
            beams = {"until": ["\n", "e"], "max_gen_toks": 6, "num_beams": 2}
            some = [
                instance("generate_until", {}, (one.args[0], beams), 0)
                for one in prompts[:4]
            ]
            out += lm.generate_until(some, disable_tqdm=True)
            out += [
                lm.max_length,
                lm.tokenizer_name.rpartition("__")[2],
                lm.prefix_token_id,
                lm.eot_token_id,
            ]
    return out


if __name__ == "__main__":
    root, folder, what = sys.argv[1:]
    warnings.simplefilter("ignore")
    result = globals()[what](root, Path(folder))
    loaded = "lm_eval" in sys.modules
    assert loaded == (root == "lm_eval"), f"{root} with lm_eval loaded: {loaded}"
    sys.stdout.write("\n@" + json.dumps(result, default=list))
