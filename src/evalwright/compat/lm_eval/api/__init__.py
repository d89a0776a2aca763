"""The names of `lm_eval.api` that model classes, task modules and scripts import."""
