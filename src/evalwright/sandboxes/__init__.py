"""Places where programs of models run, and cannot reach anything else.

`protocol` says what a sandbox is, `backends` which kinds there are, `plan` what a task puts into
one. A sandbox lives as long as a trajectory; its state outlives it as a snapshot.
"""
