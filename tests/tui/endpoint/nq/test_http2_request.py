"""Requests and answers as values."""

from linkgauge.tui.endpoint.nq.http2_request import Answer, Request


def test_the_first_header_of_a_name_counts_and_others_are_ignored() -> None:
    """Bytes that are no text of a known encoding are no error."""
    headers = [(b":method", b"GET"), (b":path", b"/\xff"), (b":path", b"/2"), (b"cookie", b"x"), (b"origin", b"a")]
    assert Request.of_headers(headers) == Request("GET", "/ÿ", "", "a", "")


def test_a_request_of_a_proxy_names_the_host_in_a_header() -> None:
    """The authority comes first if both are there."""
    fields = [(b":method", b"GET"), (b":path", b"/"), (b":authority", b"a"), (b"host", b"b")]
    assert Request.of_headers(fields).authority == "a"
    assert Request.of_headers([each for each in fields if each[0] != b":authority"]).authority == "b"


def test_an_answer_has_few_headers() -> None:
    """The answer to a probe is measured."""
    assert Answer(200, b"x").header_list() == [
        (":status", "200"),
        ("content-type", "application/octet-stream"),
        ("content-length", "1"),
    ]
    busy = Answer.of_text(429, "busy", 7)
    assert ("retry-after", "7") in busy.header_list()
    assert busy.body == b"linkgauge: busy\n"
