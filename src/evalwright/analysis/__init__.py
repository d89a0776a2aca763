"""Questions to finished runs and to tasks."""
