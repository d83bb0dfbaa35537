"""A test with the page of a browser: its run, its turn at the endpoint, and the messages between the two.

This host is the near end, because only it sees sockets: `out` is what the page downloads. It knows no HTTP.
`tui/endpoint/browser` serves the page and passes its WebSockets on.
Public: page_run (PageRun, PageLink), page_far_end (open_page_run), hosted_run (HostedRun), page_messages.
"""
