"""The verdict in words, the findings that explain it, the averages by period, and all warnings."""

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ....engine.results.summary import Period, Summary
from ....presets.verdict import Verdict
from ...rendering.styles import MUTED, VERDICT_STYLES
from ...state.instrument_values import Phase, period_bit_s, response_bits_of
from ...state.live_readings import CockpitSnapshot
from ...text import numbers
from ...text.plan import non_default_options_text
from .findings_panel import FindingsPanel


class VerdictPanel(VerticalScroll):
    """Shows the verdict and the findings; during a run, the rate and the averages so far."""

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
        """Lay out the verdict, the findings and the rest; the panel scrolls over all three."""
        yield Static(markup=False, classes="head")
        yield FindingsPanel()
        yield Static(markup=False, classes="rest")

    def show(self, view: CockpitSnapshot) -> None:
        """Show these values."""
        self.query_one(FindingsPanel).show(view.findings)
        self.set_class(bool(view.findings), "-explained")
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


def _lines(view: CockpitSnapshot) -> list[Content]:
    """Return all lines but the findings, which the panel puts after the first of these."""
    if view.summary is not None and view.verdict is not None:
        lines = _outcome_lines(view, view.summary, view.verdict)
    elif view.readings is not None and view.phase in {Phase.RUNNING, Phase.STOPPING}:
        lines = _progress_lines(view)
    elif view.phase is Phase.STARTING:
        lines = [Content("Asking the far end …")]
    else:
        lines = [Content.styled("No run yet.", MUTED)]
    if options := non_default_options_text(view.plan):
        lines.append(Content.styled(f"asked for: {options}", MUTED))
    run_warnings = view.readings.warnings if view.readings else []
    warnings = dict.fromkeys([*map(numbers.sanitize, view.notices), *run_warnings])
    return lines + [Content.assemble(("▲ ", "bold $text-warning"), warning) for warning in warnings]


def _outcome_lines(view: CockpitSnapshot, summary: Summary, verdict: Verdict) -> list[Content]:
    word = verdict.word
    style = f"bold {VERDICT_STYLES[word]}"
    text = numbers.sanitize(verdict.text.removeprefix(f"{word.upper()}: "))
    lines = [Content.assemble((numbers.verdict(word), style), "  ", text)]
    if not summary.end.reason.is_regular:
        reason = numbers.reason(summary.end.reason).upper()
        lines = [Content("\n").join([Content.styled(f"✗ {reason}", "bold $text-error"), Content(text)])]
    if len(summary.periods) > 1:
        lines += _period_lines(view, summary)
    total = summary.measured.total
    facts = [numbers.payload(total.bytes) if total else "", numbers.reason(summary.end.reason)]
    tcp = summary.tcp
    if tcp.retransmits is not None:
        facts.append(f"{numbers.count(tcp.retransmits)} retransmits")
    if tcp.rtt_us is not None:
        facts.append(f"rtt {numbers.milliseconds(tcp.rtt_us)}")
    if tcp.mss_bytes is not None:
        facts.append(f"mss {tcp.mss_bytes}")
    if tcp.congestion is not None:
        facts.append(numbers.sanitize(tcp.congestion))
    lines.append(Content.styled(" · ".join(fact for fact in facts if fact), MUTED))
    return lines


def _period_lines(view: CockpitSnapshot, summary: Summary) -> list[Content]:
    """Return a line for each period that lasted longer than its warm-up."""
    response_bits = response_bits_of(view.readings.plan if view.readings else view.plan)
    return [
        _period_line(period, response_bits)
        for period in summary.periods
        if period.measured.out is not None or period.measured.in_ is not None
    ]


def _period_line(period: Period, response_bits: int | None) -> Content:
    """Return the average and the settings of a period: `412 Mb/s … 1 session`."""
    rate = period_bit_s(period)
    unit = "Mb/s" if response_bits is None else "trans/s"
    expected = period.expectation[period.settings.direction]
    percent = numbers.share(rate, expected.bit_s if expected else None)
    return Content.assemble(
        ("  ", ""),
        (f"{numbers.rate_number(rate, response_bits):>8}{numbers.NBSP}{unit}", "bold"),
        f" {numbers.percent(percent, width=5)}" if percent is not None else "",
        (f"  {numbers.settings(period.settings)}", MUTED),
    )


def _progress_lines(view: CockpitSnapshot) -> list[Content]:
    """Return the current rate as a percentage of the expected one, and the averages so far."""
    readings, summary = view.readings, view.interim_summary
    lines: list[Content] = []
    if readings is None or readings.in_warmup:
        lines.append(Content.styled("◌ warming up: shown, and not counted", MUTED))
    else:
        percent = readings.flow(readings.settings.direction).percent
        text = "nothing to expect: measures, and does not judge"
        if percent is not None:
            text = f"now {numbers.percent(percent)} of what is expected"
        lines.append(Content.assemble(("● ", "$text-success"), text))
    averages = _period_lines(view, summary) if summary else []
    if averages:
        lines.append(Content.styled("average so far", MUTED))
    return lines + averages
