"""The HHEM leaderboard: its files, the order of its rows, its command."""
