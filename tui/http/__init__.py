"""What the servers of pages share: `linkgauge web`, and an endpoint that serves browsers.

Public: visitors (Visitors), page_headers (PAGE_HEADERS), server_log (ServerLog).
"""
