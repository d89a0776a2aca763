"""The names of `lm_eval.filters` that scripts and task modules import."""
