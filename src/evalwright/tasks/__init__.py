"""Tasks: the task file, its data, prompts and shots, and the index of all tasks.

    loading.load_task("factual-closed-book")       a task by name, by path, or by `file.yaml:member`
    index.find()                                   every task there is, without loading any
    decorator.task("name")                         a task written in Python

A task file goes through `yaml_files` (values and their lines), `definitions` (include, for_each),
`schema` (pydantic) and `compiling`, and becomes a `core.tasks.Task`, whose samples are read from
disk one by one.
"""
