"""`python -m linkgauge` and the `linkgauge` command."""

import sys


def main() -> None:
    """Run the command line; what it answers is the exit status."""
    from .tui.cli.main import run_command_line

    sys.exit(run_command_line(sys.argv[1:]))


if __name__ == "__main__":
    main()
