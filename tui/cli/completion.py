"""Completion of command lines by a shell: its question, the answer, and the values that complete an argument.

A package installs the scripts for bash, zsh and fish, and `linkgauge completions SHELL` prints them. They run the
program with COMPLETION_VARIABLE set. The question is in variables whose names earlier scripts have as well, so that
a new program answers these.
"""

import os
from dataclasses import dataclass
from typing import Final

from click import Command
from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from ...engine.model.errors import PlanError
from .click_extension.option_fields import argument
from .output import PROGRAM, emit, emit_line

COMPLETION_VARIABLE: Final = "_LINKGAUGE_COMPLETE"
SCRIPTS: Final = {
    "bash": """_linkgauge_completion() {
    local IFS=$'
'
    COMPREPLY=( $( env COMP_WORDS="${COMP_WORDS[*]}" \\
                   COMP_CWORD=$COMP_CWORD \\
                   _LINKGAUGE_COMPLETE=complete_bash $1 ) )
    return 0
}

complete -o default -F _linkgauge_completion linkgauge
""",
    # zsh autoloads the file as the function itself: the function has to answer the first call too.
    "zsh": """#compdef linkgauge

_linkgauge_completion() {
  eval $(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _LINKGAUGE_COMPLETE=complete_zsh linkgauge)
}

_linkgauge_completion "$@"
""",
    "fish": (
        'complete --command linkgauge --no-files --arguments "(env _LINKGAUGE_COMPLETE=complete_fish'
        " _TYPER_COMPLETE_FISH_ACTION=get-args _TYPER_COMPLETE_ARGS=(commandline -cp) linkgauge)"
        '" --condition "env _LINKGAUGE_COMPLETE=complete_fish'
        ' _TYPER_COMPLETE_FISH_ACTION=is-args _TYPER_COMPLETE_ARGS=(commandline -cp) linkgauge"\n'
    ),
}
_MAX_RUNS: Final = 200  # the newest that a shell shows
_ZSH: Final = str.maketrans({'"': '""', "'": "''", "$": "\\$", "`": "\\`", ":": "\\\\:"})


@dataclass(frozen=True, slots=True)
class CompletionsOptions:
    """The shell that loads the completion."""

    shell: str = argument("SHELL", "bash, zsh or fish.")


def completions(options: CompletionsOptions) -> int:
    """Print the completion of commands, options, presets and runs for a shell.

    bash, in ~/.bashrc: eval "$(linkgauge completions bash)"

    zsh, into a folder of $fpath: linkgauge completions zsh > FOLDER/_linkgauge

    fish: linkgauge completions fish > ~/.config/fish/completions/linkgauge.fish
    """
    script = SCRIPTS.get(options.shell)
    if script is None:
        raise PlanError("completions", options.shell, "give bash, zsh or fish")
    emit(script)
    return 0


def complete(command: Command) -> int:
    """Print the completions of the command line in the environment; return the exit status for the shell."""
    shell = os.environ[COMPLETION_VARIABLE].removeprefix("complete_")
    answer = {"bash": _answer_bash, "zsh": _answer_zsh, "fish": _answer_fish}.get(shell)
    if answer is None:
        return 1
    words, incomplete = _question(shell)
    source = ShellComplete(command, {}, PROGRAM, COMPLETION_VARIABLE)
    return answer(source.get_completions(words, incomplete))


def _question(shell: str) -> tuple[list[str], str]:
    """Return the words before the one that is typed, without the program, and the beginning of that one."""
    if shell == "bash":
        words, number = split_arg_string(os.environ["COMP_WORDS"]), int(os.environ["COMP_CWORD"])
        return words[1:number], words[number] if number < len(words) else ""
    line = os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words = split_arg_string(line)[1:]
    if not words or line.endswith(" "):
        return words, ""
    return words[:-1], words[-1]


def _answer_bash(items: list[CompletionItem]) -> int:
    emit_line("\n".join(item.value for item in items))
    return 0


def _answer_zsh(items: list[CompletionItem]) -> int:
    """Answer with a command for zsh; without completions it completes files."""
    lines = [":".join(f'"{text.translate(_ZSH)}"' for text in (item.value, item.help) if text) for item in items]
    emit_line("_arguments '*: :((" + "\n".join(lines) + "))'" if lines else "_files")
    return 0


def _answer_fish(items: list[CompletionItem]) -> int:
    """Answer one of fish's two questions: the completions, or by the status whether there are any."""
    if os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        return 0 if items else 1
    emit_line(
        "\n".join("\t".join(" ".join(text.split()) for text in (item.value, item.help) if text) for item in items)
    )
    return 0


def complete_preset(incomplete: str) -> list[tuple[str, str]]:
    """Return the presets whose id begins so, with their names."""
    from ..session.user_presets import load_presets

    return [(preset.id, preset.name) for preset in load_presets().presets if preset.id.startswith(incomplete)]


def complete_test_preset(incomplete: str) -> list[tuple[str, str]]:
    """Return the same for a test, which may also choose the preset itself."""
    automatic = (
        [("auto", "The preset of the network interfaces at both ends")] if "auto".startswith(incomplete) else []
    )
    return automatic + complete_preset(incomplete)


def complete_run(incomplete: str) -> list[tuple[str, str]]:
    """Return the runs whose id begins with a text, with preset and peer; nothing if they cannot be read.

    `last` comes first.
    """
    from ...engine.model.errors import LinkgaugeError
    from ..session.storage import LAST, open_run_list

    try:
        with open_run_list() as log:
            rows = log.find_entries(incomplete, _MAX_RUNS)
    except LinkgaugeError:
        return []
    last = [(LAST, "The newest run")] if LAST.startswith(incomplete) else []
    return last + [(row.run_id, f"{row.preset or 'no preset'}, {row.peer}") for row in rows]
