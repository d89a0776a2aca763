"""What is refused before anything is sent: likelihoods that no row could be judged by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evalwright import Sample
from evalwright.compat.hret.call import Call
from evalwright.extend import AbilityError, ConfigurationError


def check_likelihoods(call: Call, samples: Sequence[Sample]) -> None:
    """Refuse `log_likelihood` where no row could have a verdict.

    A row may bring its options' log-probabilities, and so may a plug-in, a scaling method of a
    user, or a function. Raises AbilityError for a model that gives none, ConfigurationError for
    rows without options.
    """
    if call.method != "log_likelihood" or not samples:
        return
    if not any(sample.row.get("options") for sample in samples):
        raise ConfigurationError(
            "'log_likelihood' compares the options of a row, and no row of"
            f" '{call.dataset_name}' has `options`. Use the method 'string_match'."
        )
    native = call.native
    if native is None or native.by_options or call.scaler is not None:
        return
    if native.is_function or any(map(_has_option_log_probs, samples)):
        return
    raise AbilityError(
        f"'{call.model_name}' gives no log-probabilities of a row's options, so"
        " 'log_likelihood' could judge no row, and nothing was sent. Use"
        " model='huggingface', or the method 'string_match'."
    )


def _has_option_log_probs(sample: Sample) -> bool:
    logits = sample.row.get("logits")
    return isinstance(logits, Mapping) and bool(logits.get("option_log_probs"))
