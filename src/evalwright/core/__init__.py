"""Records shared by all packages (tasks, samples, requests, responses) and errors; no I/O."""
