"""The verdict in words, the findings that explain it, the averages by period, and all warnings."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ..kit.drawing.styles import GOOD, MUTED, SHORT, VERDICT_STYLES
from ..readings.cockpit_snapshot import Phase
from ..readings.flow_reading import flow_reading
from ..words import numbers
from ..words.iperf3 import source_texts, unseen_text
from ..words.paths.path_hops import place_sentences
from ..words.plan import non_default_options_text
from ..words.responsiveness import grade_text, is_queue_finding, phase_text, share_text
from ..words.summary import findings_period, headline, period_averages, progress_text, run_facts

if TYPE_CHECKING:
    from ...engine.results.summary import Summary
    from ...presets.diagnosis.finding import Finding
    from ...presets.verdict import Verdict
    from ..readings.cockpit_snapshot import CockpitSnapshot

_GOOD_CODES: Final = frozenset({"at-expected", "no-queue"})


class FindingsPanel(Static):
    """Shows findings in as many rows as they need. Without findings it is hidden."""

    DEFAULT_CSS = """
    FindingsPanel { height: auto; padding: 0 1 0 0; }
    """

    def __init__(self) -> None:
        super().__init__(id="why", markup=False)
        self._content: tuple[tuple[Finding, ...], str, tuple[str, ...]] | None = None
        self.display = False

    def show_findings(self, findings: "tuple[Finding, ...]", period: str = "", places: Sequence[str] = ()) -> None:
        """Show these findings, and the period of the run that they are about if it is not the whole run.

        `places` are sentences about hops of the path, which stand before them.
        """
        content = findings, period, tuple(places)
        if content == self._content:
            return
        self._content = content
        self.display = bool(findings or places)
        head = [Content.styled(f"{period}:", MUTED)] if period else []
        hops = [Content.assemble(("◆ ", f"bold {SHORT}"), (numbers.sanitize(text), "bold")) for text in places]
        self.update(Content("\n").join([*hops, *head, *finding_lines(findings)]))


class VerdictPanel(VerticalScroll):
    """Shows the verdict and the findings. During a run, it shows the rate and the averages so far."""

    DEFAULT_CSS = """
    VerdictPanel {
        padding: 0 0 0 1;
        scrollbar-size-vertical: 1;
        & > Static { height: auto; padding: 0 1 0 0; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="verdict")
        self._text = Content("")
        self.border_title = "why"

    def compose(self) -> ComposeResult:
        """Lay out the verdict, the findings and the rest. All three scroll together."""
        yield Static(markup=False, classes="head")
        yield FindingsPanel()
        yield Static(markup=False, classes="rest")

    def show_snapshot(self, view: "CockpitSnapshot") -> None:
        """Show these values."""
        places = () if view.path is None else place_sentences(view.path)
        self.query_one(FindingsPanel).show_findings(
            view.findings, findings_period(view.summary) if view.summary is not None else "", places
        )
        self.set_class(bool(view.findings or places), "-explained")
        lines = _lines(view)
        text = Content("\n").join(lines)
        if text.is_same(self._text):
            return
        is_same_length = len(text.plain) == len(self._text.plain)
        self._text = text
        self.query_one(".head", Static).update(lines[0], layout=not is_same_length)
        rest = self.query_one(".rest", Static)
        rest.display = len(lines) > 1
        rest.update(Content("\n").join(lines[1:]), layout=not is_same_length)


def _lines(view: "CockpitSnapshot") -> list[Content]:
    """Return all lines but the findings, which the panel puts after the first line."""
    if view.summary is not None and view.verdict is not None:
        lines = _outcome_lines(view, view.summary, view.verdict)
    elif view.readings is not None and view.phase in {Phase.RUNNING, Phase.STOPPING}:
        lines = _progress_lines(view)
    elif view.phase is Phase.STARTING:
        is_idle = view.readings is not None and view.readings.plan.responsiveness is not None
        lines = [Content("Connecting, then measuring latency without load …" if is_idle else "Connecting …")]
    else:
        lines = [Content.styled("No run yet.", MUTED)]
    if options := non_default_options_text(view.plan):
        lines.append(Content.styled(f"requested: {options}", MUTED))
    run_warnings = view.readings.warnings if view.readings else []
    warnings = dict.fromkeys([*map(numbers.sanitize, view.notices), *run_warnings])
    return lines + [Content.assemble(("▲ ", "bold $text-warning"), warning) for warning in warnings]


def _outcome_lines(view: "CockpitSnapshot", summary: "Summary", verdict: "Verdict") -> list[Content]:
    first = headline(summary, verdict)
    style = f"bold {VERDICT_STYLES[first.word]}" if first.is_regular else "bold $text-error"
    lines = [Content.assemble((first.mark, style), "  " if first.is_regular else "\n", first.text)]
    if first.is_regular and first.word == "none" and summary.plan.has_phases and summary.responsiveness is not None:
        # The latency has no limit here, and its figures are in a panel of their own.
        lines = [Content.assemble(("grade ", MUTED), grade_text(summary.responsiveness))]
    if len(summary.periods) > 1:
        lines += _period_lines(view, summary)
    notes = [*source_texts(summary), unseen_text(summary.unseen_end, summary.dialect)]
    texts = [" · ".join(run_facts(summary)), *filter(None, notes)]
    return [*lines, *(Content.styled(text, MUTED) for text in texts)]


def _period_lines(view: "CockpitSnapshot", summary: "Summary") -> list[Content]:
    """Return the average and the settings of each period: `412 Mb/s … 1 session`."""
    averages = period_averages(summary, view.pass_percent, is_over=view.summary is not None)
    return [
        Content.assemble((rate, "bold"), f" {verdict}" if verdict else "", (f"  {settings}", MUTED))
        for rate, verdict, settings in averages
    ]


def _progress_lines(view: "CockpitSnapshot") -> list[Content]:
    """Return the current rate as a percentage of the expected one, and the averages so far."""
    readings, summary = view.readings, view.interim_summary
    if readings is None or readings.in_warmup:
        lines = [Content.styled("◌ warming up: not counted yet", MUTED)]
    else:
        percent = flow_reading(view, readings.settings.direction).percent
        lines = [Content.assemble(("● ", "$text-success"), progress_text(percent))]
    if readings is not None and readings.plan.responsiveness is not None:
        lines.insert(0, Content.styled(phase_text(readings.plan, readings.settings.direction), "bold"))
    averages = _period_lines(view, summary) if summary else []
    return [*lines, *([Content.styled("average so far", MUTED)] if averages else []), *averages]


def finding_lines(findings: "tuple[Finding, ...]") -> list[Content]:
    """Return the first finding with its remedy and evidence, and the headlines of the others.

    Findings about queues always have them: each is about another direction.
    """
    lines: list[Content] = []
    for number, finding in enumerate(findings):
        lines.append(_headline(finding))
        if number == 0 or is_queue_finding(finding):
            if finding.code not in _GOOD_CODES and finding.remedy:
                lines.append(Content.assemble(("→ ", "bold"), numbers.sanitize(finding.remedy)))
            lines.append(Content.styled(numbers.sanitize(finding.evidence), MUTED))
    return lines


def _headline(finding: "Finding") -> Content:
    text = numbers.sanitize(finding.text)
    if finding.code in _GOOD_CODES:
        return Content.assemble(("● ", GOOD), text)
    share = share_text(finding)
    return Content.assemble(("◆ ", f"bold {SHORT}"), (text, "bold"), (f" {share}" if share else "", MUTED))
