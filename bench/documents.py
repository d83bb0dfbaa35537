"""The benchmark's tables in README and docs/benchmarks.md, from the results of one run.

Usage: make bench-docs [ARGS="--results FILE"]

Writes both tables between their marks, and a copy of the results beside this script, from which the tests make the
same tables again: no figure is written by hand. A benchmark that was broken off or left cases out is refused.
"""

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from measurements import Results, load_results
from report import report_text, summary_text

ROOT = Path(__file__).parents[1]
PUBLISHED = Path(__file__).with_name("published.json")
_RESULTS = Path(__file__).parent / "results" / "bench.json"
_TEXTS = {ROOT / "README.md": summary_text, ROOT / "docs" / "benchmarks.md": report_text}
_BEGIN, _END = "<!-- benchmark: written by make bench-docs -->", "<!-- end of benchmark -->"
_BLOCK = re.compile(f"{re.escape(_BEGIN)}\n(.*?){re.escape(_END)}\n", re.DOTALL)


def marked_block(text: str) -> str:
    """Return what stands between the marks of a document. Raises ValueError if they are not there once."""
    blocks = _BLOCK.findall(text)
    if len(blocks) != 1:
        raise ValueError(f"needs the mark {_BEGIN} and {_END} once, has them {len(blocks)} times")
    return blocks[0]


def replace_block(text: str, block: str) -> str:
    """Return a document with another block between its marks. Raises ValueError if they are not there once."""
    marked_block(text)
    return _BLOCK.sub(lambda _: f"{_BEGIN}\n{block.strip()}\n{_END}\n", text)


def blocks(results: Results) -> dict[Path, str]:
    """Return the block of each document."""
    return {path: make_text(results).strip() + "\n" for path, make_text in _TEXTS.items()}


def reason_not_to_publish(results: Results) -> str | None:
    """Return why results are no whole benchmark; None if they are."""
    if results.is_interrupted:
        return "this benchmark was broken off"
    if results.is_partial:
        return "this benchmark left cases out (--only)"
    ours = [case.name for case in results.cases if case.ours.failure or not case.ours.rounds]
    return f"linkgauge has no rate in {', '.join(ours)}" if ours else None


def main() -> None:
    """Write the documents."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
    parser.add_argument(
        "--results",
        type=Path,
        default=_RESULTS,
        metavar="FILE",
        help="results of make bench (bench/results/bench.json)",
    )
    options = parser.parse_args()
    try:
        results = load_results(options.results)
    except (OSError, ValueError) as error:
        parser.error(f"{error}: run make bench first")
    reason = reason_not_to_publish(results)
    if reason is not None:
        parser.error(reason)
    texts = {
        path: replace_block(path.read_text(encoding="utf-8"), block) for path, block in blocks(results).items()
    }
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
        print(f"written: {path.relative_to(ROOT)}")
    results.save(PUBLISHED)


if __name__ == "__main__":
    main()
