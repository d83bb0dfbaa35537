"""Tests with clients over HTTP, a browser's page or networkQuality: runs, their turns at the endpoint, messages.

This host is the near end, because only it sees sockets: `out` is what the page downloads. It knows no HTTP.
`tui/endpoint/browser` serves the page and passes its WebSockets on; `tui/endpoint/nq` serves networkQuality.
Public: page_run (PageRun, PageLink), page_far_end (open_page_run), page_messages, quality_run (QualityRun),
hosted_run (HostedRun).
"""
