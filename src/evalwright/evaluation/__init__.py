"""From what was asked to runs, on one path of three stages, with a frozen value between each two.

    settings  ->  Settings  ->  plan  ->  Plan  ->  run  ->  Run

1. **Settings** (`settings`): what was asked, with where each setting comes from. They are read from
   a file and the flags of a command (`configuration_file.read_settings`) or from a call in Python
   (`objects.settings_from_python`); what only a person may decide is held back there (`origins`).
   Here, and only here, it is checked that a setting is what it must be.
2. **Plan** (`planning.make_plan`): what will be done. The names in the settings become tasks
   (`task_choice`), models and roles (`opening`), rules, a shard's part, prices and a budget; all of
   them are checked against each other, down to the last row of a task (`task_checks`), and one
   `PlannedRun` is named for each model. Nothing is looked up, opened or checked after it.
3. **Run** (`running.run_plan`): requests are sent, answers scored (`scoring`), and the record is
   written (`recording`). It knows of no file, flag or shard.

`evaluating.evaluate` is the whole path for Python, `evaluate_settings` for a command.
"""
