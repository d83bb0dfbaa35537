"""`[PRESET] PEER`: the order of words in every command that tests, swapped words, the far end of a lab's shell."""

import pytest
from linkgauge.engine.model.errors import UsageError
from linkgauge.tui.cli.peer_options import PEER_VARIABLE, JudgedTargetOptions, Target, TargetOptions, find_named


@pytest.fixture(autouse=True)
def _no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PEER_VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("words", "target"),
    [
        (("db-02",), Target("auto", "db-02")),
        (("100mb-fd", "db-02"), Target("100mb-fd", "db-02")),
        (("db-02", "100mb-fd"), Target("100mb-fd", "db-02")),
        (("none", "db-02"), Target(None, "db-02")),
        (("db-02", "auto"), Target("auto", "db-02")),
        (("loopback",), Target("auto", "loopback")),
        (("loopback", "db-02"), Target("loopback", "db-02")),
        (("loopback", "100mb-fd"), Target("100mb-fd", "loopback")),
        (("loopback", "loopback"), Target("loopback", "loopback")),
        (("100mb-fd", "100mb-fd:5820"), Target("100mb-fd", "100mb-fd:5820")),
        (("100mb-fd:5820",), Target("auto", "100mb-fd:5820")),
    ],
)
def test_a_preset_comes_before_the_host_and_swapped_words_are_understood(
    words: tuple[str, ...], target: Target
) -> None:
    """A preset's name is never a host; loopback is both."""
    assert (
        JudgedTargetOptions(first=words[0], second=words[1] if words[1:] else None).find("check", "auto") == target
    )


def test_the_option_says_the_same_as_the_word() -> None:
    """Each command has both; an unjudged one has no preset without them."""
    assert TargetOptions(first="db-02", preset="100mb-fd").find("run") == Target("100mb-fd", "db-02")
    assert TargetOptions(first="db-02").find("run") == Target(None, "db-02")
    with pytest.raises(UsageError, match="contradict"):
        TargetOptions(first="10mb-fd", second="db-02", preset="100mb-fd").find("run")


def test_in_a_lab_the_host_may_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that is named counts all the same."""
    with pytest.raises(UsageError, match="PEER is missing; give a host: linkgauge mtu HOST"):
        find_named(None, "mtu")
    monkeypatch.setenv(PEER_VARIABLE, "198.18.0.2:5820")
    assert TargetOptions().find("run") == Target(None, "198.18.0.2:5820")
    assert TargetOptions(first="100mb-fd").find("respond") == Target("100mb-fd", "198.18.0.2:5820")
    assert TargetOptions(first="db-02").find("run") == Target(None, "db-02")
    assert find_named("", "run") == ""
