"""What a run was made on and how fast it went.

Nothing heavy is imported, and no run fails for what cannot be read.
"""
