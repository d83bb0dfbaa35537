"""Tables in documents: from the results of one run, word by word."""

import subprocess
import sys
from pathlib import Path

import documents
import pytest
from documents import blocks, marked_block, reason_not_to_publish, replace_block
from measurements import load_results

from .example_results import case, entry, results

TEXT = f"before\n{documents._BEGIN}\nold\n{documents._END}\nafter\n"


def test_both_documents_have_the_marks_once() -> None:
    """Else a table could not be replaced."""
    for path in documents._TEXTS:
        assert marked_block(path.read_text(encoding="utf-8"))


def test_the_published_tables_are_those_of_the_published_results() -> None:
    """A figure that was changed by hand is found."""
    if not documents.PUBLISHED.exists():
        pytest.skip("no results are published yet: make bench, then make bench-docs")
    for path, block in blocks(load_results(documents.PUBLISHED)).items():
        assert marked_block(path.read_text(encoding="utf-8")) == block, path


def test_a_block_is_replaced_and_nothing_else() -> None:
    """Backslashes of a table are no escapes."""
    text = replace_block(TEXT, "new \\1 \\| table\n\n")
    assert text == TEXT.replace("old", "new \\1 \\| table")
    assert replace_block(text, "old") == TEXT
    for broken in ("", TEXT * 2, TEXT.replace(documents._END, "")):
        with pytest.raises(ValueError, match="once"):
            replace_block(broken, "new")


def test_results_survive_their_file(tmp_path: Path) -> None:
    """The tables of a file's results are the same as those of the run."""
    found = results(case("best", entry("linkgauge run", "ours", [1e9, 2e9]), entry("iperf3", "peer", [1e9])))
    found.cases[0].entries[1].failure = "exit status 1"
    found.save(tmp_path / "bench.json")
    assert load_results(tmp_path / "bench.json") == found
    for text in ("", "[]", "{}", "null", '{"cases": [1]}', '{"cases": []}'):
        (tmp_path / "bench.json").write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match="no results"):
            load_results(tmp_path / "bench.json")


def test_only_a_whole_benchmark_is_published(tmp_path: Path) -> None:
    """A part of one would be read as all of it; the documents stay as they are."""
    found = results(case("best", entry("linkgauge run", "ours", [1e9]), entry("iperf3", "peer", [1e9])))
    assert reason_not_to_publish(found) is None
    found.is_partial = True
    assert reason_not_to_publish(found) == "this benchmark left cases out (--only)"
    found.save(tmp_path / "bench.json")
    before = {path: path.read_bytes() for path in documents._TEXTS}
    for file, reason in (("bench.json", "left cases out"), ("none.json", "run make bench first")):
        command = [sys.executable, documents.__file__, "--results", str(tmp_path / file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 2
        assert reason in done.stderr
    assert before == {path: path.read_bytes() for path in documents._TEXTS}
    found.is_partial, found.is_interrupted = False, True
    assert reason_not_to_publish(found) == "this benchmark was broken off"
    found.is_interrupted = False
    found.cases[0].ours.failure = "exit status 3"
    assert reason_not_to_publish(found) == "linkgauge has no rate in best"
