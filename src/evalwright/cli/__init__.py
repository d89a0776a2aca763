"""The command `evalwright`: one file per command, each parses options, calls the API and prints."""

from evalwright.cli.command_line import cli, main

__all__ = ["cli", "main"]
