"""Streams of the command line: data to stdout, everything else to stderr."""

import json

import pytest
from linkgauge.tui.cli.output import emit_json, emit_json_line, emit_rich, log_stderr_line, print_stderr
from rich.table import Table


def test_data_is_json_without_escapes_and_never_nan(capsys: pytest.CaptureFixture[str]) -> None:
    """A line is one document, and NaN is no JSON."""
    emit_json_line({"name": "イーサネット"})
    emit_json({"rates": [1, 2]})
    first, _, rest = capsys.readouterr().out.partition("\n")
    assert first == '{"name": "イーサネット"}'
    assert json.loads(rest) == {"rates": [1, 2]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        emit_json({"rate": float("nan")})


def test_tables_have_neither_styles_nor_trailing_blanks_without_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Markup in a name stays as it is."""
    table = Table(box=None)
    table.add_column("id", width=40, style="bold")
    table.add_row("[red]x")
    emit_rich(table)
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in lines] == ["id", "[red]x"]
    assert all(line == line.rstrip() for line in lines)


def test_messages_leave_stdout_to_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    """With the program's name for people, and as JSON for programs."""
    print_stderr("nobody answers")
    log_stderr_line('{"event": "refused"}', str)
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.splitlines() == ["linkgauge: nobody answers", '{"event": "refused"}']
