"""Completion of command lines by a shell: the answer to its question, and the values that complete an argument.

The scripts that a package installs for bash, zsh and fish run the program with COMPLETION_VARIABLE set.
"""

from typing import Any, Final

COMPLETION_VARIABLE: Final = "_LINKGAUGE_COMPLETE"
_MAX_RUNS: Final = 200  # the newest that a shell shows


def complete(command: Any, program: str) -> int:
    """Print the completions of the command line in the environment; return the exit status for the shell."""
    from typer import completion

    completion.completion_init()  # pyright: ignore[reportPrivateImportUsage] (no public name registers the shells)
    try:
        command.main([], prog_name=program, complete_var=COMPLETION_VARIABLE, standalone_mode=False)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


def complete_preset(incomplete: str) -> list[tuple[str, str]]:
    """Return the presets whose id begins so, with their names."""
    from ..services.user_presets import load_presets

    return [(preset.id, preset.name) for preset in load_presets().presets if preset.id.startswith(incomplete)]


def complete_test_preset(incomplete: str) -> list[tuple[str, str]]:
    """Return the same for a test, which may also choose the preset itself."""
    automatic = (
        [("auto", "The preset of the network interfaces at both ends")] if "auto".startswith(incomplete) else []
    )
    return automatic + complete_preset(incomplete)


def complete_run(incomplete: str) -> list[tuple[str, str]]:
    """Return the saved runs whose id begins so, with their preset and peer; nothing where they cannot be read."""
    from ...engine.model.errors import LinkgaugeError
    from ..services.storage import open_run_list

    try:
        with open_run_list() as log:
            rows = log.find_entries(incomplete, _MAX_RUNS)
    except LinkgaugeError:
        return []
    return [(row.run_id, f"{row.preset or 'no preset'}, {row.peer}") for row in rows]
