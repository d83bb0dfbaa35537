"""The verdict in words, why it is not better, and everything a person should know about the figures."""

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
    """Shows the verdict of a View; before there is one, how it goes so far."""

    DEFAULT_CSS = """
    VerdictPanel {
        padding: 0 0 0 1;
        scrollbar-size-vertical: 1;
        & > Static { height: auto; padding: 0 1 0 0; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="verdict")
        self._said = Content("")
        self.border_title = "why"

    def compose(self) -> ComposeResult:
        """Lay out the verdict, the findings, and the rest, each as long as it is."""
        yield Static(markup=False, classes="head")
        yield FindingsPanel()
        yield Static(markup=False, classes="rest")

    def show(self, view: CockpitSnapshot) -> None:
        """Show these values."""
        self.query_one(FindingsPanel).show(view.findings)
        self.set_class(bool(view.findings), "-explained")
        lines = _lines(view)
        said = Content("\n").join(lines)
        if said.is_same(self._said):
            return
        same_room = len(said.plain) == len(self._said.plain)
        self._said = said
        self.query_one(".head", Static).update(lines[0], layout=not same_room)
        rest = self.query_one(".rest", Static)
        rest.display = len(lines) > 1
        rest.update(Content("\n").join(lines[1:]), layout=not same_room)


def _lines(view: CockpitSnapshot) -> list[Content]:
    """Return what there is to say but for the findings, which come after the first of these."""
    if view.summary is not None and view.verdict is not None:
        lines = _ended(view, view.summary, view.verdict)
    elif view.readings is not None and view.phase in {Phase.RUNNING, Phase.STOPPING}:
        lines = _so_far(view)
    elif view.phase is Phase.STARTING:
        lines = [Content("Asking the far end …")]
    else:
        lines = [Content.styled("No run yet.", MUTED)]
    asked = non_default_options_text(view.plan)
    if asked:
        lines.append(Content.styled(f"asked for: {asked}", MUTED))
    board_warnings = view.readings.warnings if view.readings else []
    warnings = dict.fromkeys([*(numbers.sanitize(n) for n in view.notices), *board_warnings])
    return lines + [Content.assemble(("▲ ", "bold $text-warning"), warning) for warning in warnings]


def _ended(view: CockpitSnapshot, summary: Summary, verdict: Verdict) -> list[Content]:
    word = verdict.word
    style = f"bold {VERDICT_STYLES[word]}"
    said = numbers.sanitize(verdict.text.removeprefix(f"{word.upper()}: "))
    lines = [Content.assemble((numbers.verdict(word), style), "  ", said)]
    if not summary.end.reason.is_regular:
        broke = numbers.reason(summary.end.reason).upper()
        lines = [Content("\n").join([Content.styled(f"✗ {broke}", "bold $text-error"), Content(said)])]
    if len(summary.periods) > 1:
        lines += _stretches(view, summary)
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


def _stretches(view: CockpitSnapshot, summary: Summary) -> list[Content]:
    """Return a line for each stretch that lasted longer than its warm-up."""
    bits = response_bits_of(view.readings.plan if view.readings else view.plan)
    return [
        _stretch(one, bits)
        for one in summary.periods
        if one.measured.out is not None or one.measured.in_ is not None
    ]


def _stretch(stretch: Period, answer_bits: int | None) -> Content:
    """Return `412 Mb/s … 1 session`: before and after of each change, side by side."""
    rate = period_bit_s(stretch)
    unit = "Mb/s" if answer_bits is None else "trans/s"
    expected = stretch.expectation[stretch.settings.direction]
    percent = numbers.share(rate, expected.bit_s if expected else None)
    return Content.assemble(
        ("  ", ""),
        (f"{numbers.rate_number(rate, answer_bits):>8}{numbers.NBSP}{unit}", "bold"),
        f" {numbers.percent(percent, width=5)}" if percent is not None else "",
        (f"  {numbers.settings(stretch.settings)}", MUTED),
    )


def _so_far(view: CockpitSnapshot) -> list[Content]:
    board, summary = view.readings, view.interim_summary
    lines: list[Content] = []
    if board is None or board.in_warmup:
        lines.append(Content.styled("◌ warming up: shown, and not counted", MUTED))
    else:
        percent = board.flow(board.settings.direction).percent
        said = "nothing to expect: measures, and does not judge"
        if percent is not None:
            said = f"now {numbers.percent(percent)} of what is expected"
        lines.append(Content.assemble(("● ", "$text-success"), said))
    stretches = _stretches(view, summary) if summary else []
    if stretches:
        lines.append(Content.styled("average so far", MUTED))
    return lines + stretches
