"""promptfoo: its configurations become a suite, a task, prompts and rows."""
