"""SEA-HELM: its task folders as a dialect, its result folders, and what its command line becomes."""
