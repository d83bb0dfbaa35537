"""The server of `linkgauge web`: the page, who may have it, and a process of the app for each page that is open.

Only this package knows aiohttp and textual-serve, the extra `linkgauge[web]`. It takes textual-serve's terminal for
browsers and speaks with Textual's driver for them. Its server and its page are not used: they check neither Host
nor Origin, start the app through a shell, have it wait for a slow browser, and load a font from elsewhere.
`browser_page` loads neither. Public: `web_server` (serve_web, WebConfig), `browser_page`,
`web_access`, `browser_session`.
"""
