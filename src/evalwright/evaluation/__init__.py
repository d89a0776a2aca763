"""From what was asked to runs, on one path, with a frozen value between each two of its stages.

    read  ->  Settings  ->  resolve  ->  Resolved  ->  plan  ->  Plan  ->  run  ->  Run

- **Settings** (`settings`): what was asked, and where each setting comes from. They are read from a
  file and the flags of a command (`configuration_file.read_settings`), or from a call in Python
  (`objects.settings_from_python`); settings that only the user may decide are held back there
  (`origins`). The values of settings are checked here, and only here.
- **Resolved** (`resolving.resolve`): what the names in the settings mean. Tasks are loaded
  (`task_choice`), models and roles opened (`opening`), and checked against each other, down to the
  last row of a task (`task_checks`, `effects`).
- **Plan** (`planning.make_plan`): what will be done, with one `PlannedRun` for each model: its
  name, folder and identity, its samples in their order, rules, a shard's part, and the budget.
  Nothing is looked up, opened or checked after it.
- **Run** (`running.run_plan`): requests are sent, answers scored (`scoring`), and the record is
  written (`recording`). It knows no file, flag or shard.

A **worker** (`workers.work_on_plan`) takes part in a plan that other processes carry out too: it
evaluates slices of it (`slicing`), and one of them makes the run of it in the end.

`evaluating.evaluate` is the whole path for Python, `evaluating.evaluate_settings` for a command:
    settings = read_settings(file, flags)
    plan = make_plan(resolve(settings))
    with open_store(plan.home) as store:
        runs = await run_plan(plan, store)
"""
