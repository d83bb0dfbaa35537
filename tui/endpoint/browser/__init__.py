"""Browsers as clients of an endpoint, and as the device that an app waits for: page, access, tests, links.

Only `browser_service`, `open_page`, `page_client`, `waiting_room` and `page_socket` know aiohttp, of the extra
`linkgauge[http]`. `browser_setup`, `join_codes` and `link_access` load neither it nor Textual.
Public: browser_setup, browser_service, page_client (EndpointPages), waiting_room (open_waiting_room).
"""
