"""The names of `lm_eval.api` that model classes import."""
