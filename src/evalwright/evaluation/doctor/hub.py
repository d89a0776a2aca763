"""Checks whether the hub answers.

A tiny dataset and a tiny model are looked up, fetched and used, in the same way as by tasks and
models.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

from evalwright.core.errors import EvalwrightError, cause_of, reason_of
from evalwright.evaluation.doctor.checks import Check
from evalwright.evaluation.doctor.devices import Probe, probe_model

DATASET = "lhoestq/demo1"
SPLIT = "train"
"""The split with a few rows in a CSV file."""
MODEL = "hf-internal-testing/tiny-random-LlamaForCausalLM"
"""A model with a few megabytes of random weights."""


def check_hub(dataset: str = DATASET, model: str = MODEL) -> Iterator[Check]:
    """Yield the checks; each asks the hub itself, even if there is a local copy."""
    if find_spec("huggingface_hub") is None:
        yield Check(
            "hub",
            "hub",
            "reach",
            "skipped",
            "huggingface_hub is not installed: pip install 'evalwright[hub]'",
        )
        return
    from huggingface_hub import HfApi

    api = HfApi()
    if find_spec("datasets") is None:
        yield Check(
            "hub",
            dataset,
            "data set",
            "skipped",
            "datasets is not installed: pip install 'evalwright[hub]'",
        )
    else:
        yield _tried(
            dataset,
            "data set",
            lambda: _rows(dataset, str(api.dataset_info(dataset).sha)),
        )
    if find_spec("torch") is None or find_spec("transformers") is None:
        yield _tried(
            model,
            "model's files",
            lambda: (
                f"revision {str(api.model_info(model).sha)[:12]}; torch is not"
                " installed"
            ),
        )
    else:
        yield _tried(
            model, "model", lambda: _answers(model, str(api.model_info(model).sha))
        )


def _tried(subject: str, name: str, work: Callable[[], str]) -> Check:
    began = time.monotonic()
    try:
        why = work()
    except EvalwrightError as error:
        return Check(
            "hub",
            subject,
            name,
            "fails",
            reason_of(error),
            round(time.monotonic() - began, 2),
        )
    except Exception as error:
        # The library has many connection errors; each means that the hub was not reached.
        advice = "Check the connection, HF_ENDPOINT and HF_HUB_OFFLINE."
        return Check(
            "hub",
            subject,
            name,
            "fails",
            f"{cause_of(error)}. {advice}",
            round(time.monotonic() - began, 2),
        )
    return Check("hub", subject, name, "works", why, round(time.monotonic() - began, 2))


def _rows(dataset: str, revision: str) -> str:
    from evalwright.tasks.datasets.copies import copy_of_hub

    path = copy_of_hub(dataset, revision, None, SPLIT)
    with path.open("rb") as file:
        number = sum(1 for _ in file)
    return f"{number} rows at revision {revision[:12]}"


def _answers(model: str, revision: str) -> str:
    probe: Probe | Any = probe_model(f"hf/{model}@{revision}", "cpu")
    return (
        f"revision {revision[:12]} answers on the CPU ({len(probe.log_likelihoods)}"
        f" log-likelihoods, {len(probe.texts)} texts)"
    )
