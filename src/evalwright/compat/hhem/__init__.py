"""The HHEM leaderboard: its files, its order of models, its command."""
