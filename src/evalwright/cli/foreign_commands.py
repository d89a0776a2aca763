"""Commands that stand for a foreign system's program, and systems whose options are recognised."""

FOREIGN_COMMANDS = {
    "lm-eval": (
        "evalwright.compat.lm_eval.harness.harness_command:lm_eval",
        "Evaluate as lm-evaluation-harness does, with its flags.",
    ),
    "hret": (
        "evalwright.compat.hret.hret_command:hret",
        "Evaluate as the HaeRae Evaluation Toolkit does, with its flags.",
    ),
}

SPELLINGS = ("evalwright.compat.lm_eval.harness.spelling:suggest_command",)
"""Functions that suggest our spelling of another program's option."""
