"""Windows that are too small, and the command that widens them."""

from linkgauge.engine.model.plan import End

from ..evidence_cases import first, run


def test_a_slow_receiver_without_a_full_core_is_reported_with_less_confidence() -> None:
    """With less confidence."""
    finding = first(run(300, rwnd_limited=0.6))
    assert (finding.code, finding.end) == ("receive-window", End.FAR)
    assert finding.confidence <= 0.5


def test_a_clamped_window_names_its_sysctl_and_its_value() -> None:
    """The remedy asks for what was asked for, or what is needed, whichever is more."""
    finding = first(
        run(
            150,
            rwnd_limited=0.8,
            min_rtt_us=10_000,
            rtt_us=10_500,
            window_bytes=4_194_304,
            send_window_bytes=4_194_304,
            receive_window_bytes=212_992,
            peer_window_bytes=277_000,
        )
    )
    assert (finding.code, finding.end) == ("window-clamped", End.FAR)
    assert "net.core.rmem_max is 212\u00a0992 bytes" in finding.evidence
    assert finding.remedy == "at the remote end: sysctl -w net.core.rmem_max=4194304"


def test_the_remedy_raises_the_kernels_limit_before_the_window() -> None:
    """Both steps are in the remedy, in order."""
    finding = first(
        run(
            45,
            sndbuf_limited=0.9,
            min_rtt_us=10_000,
            rtt_us=10_500,
            window_bytes=57_344,
            send_window_bytes=57_344,
            receive_window_bytes=57_344,
        )
    )
    assert finding.code == "window-below-bdp"
    assert finding.remedy.startswith("linkgauge … --window 2M, or --window auto; first at the local end: sysctl -w")
