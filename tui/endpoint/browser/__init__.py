"""Browsers as clients of an endpoint: the page, who may have it, its tests, and the link to it.

Only `browser_service`, `page_client` and `page_socket` know aiohttp, of the extra `linkgauge[http]`.
`browser_setup` and `link_access` load neither it nor Textual. Public: browser_setup, browser_service.
"""
