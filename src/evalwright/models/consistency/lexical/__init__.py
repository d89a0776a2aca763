"""A judge by words alone: interpretable features of how a text's sentences stand to a premise, and fixed weights."""
