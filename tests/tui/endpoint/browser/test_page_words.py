"""What a page shows: nothing that only the command line can do."""

from linkgauge.tui.endpoint.browser.page_words import notice_text


def test_a_notice_on_a_page_names_no_command_or_option() -> None:
    """The device has no command line; what the notice says stays."""
    assert notice_text("no expected rate: wlan0 has no speed; name a preset (linkgauge presets lists them)") == (
        "no expected rate: wlan0 has no speed"
    )
    assert notice_text("preset loopback: both ends are on this machine's loopback").startswith("preset loopback")
    assert notice_text("give --line-rate 1G") == "give --line-rate 1G"
