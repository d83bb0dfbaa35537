"""The files of the page for browsers, each with its policy: nothing from elsewhere, and no other page around it."""

import secrets
from importlib.resources import files
from typing import Final

from ...http.page_headers import PAGE_HEADERS

SCRIPT: Final = "mover.js"
"""The script of the page's other thread, which is a file of its own."""
_POLICY: Final = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; "
    "worker-src 'self'; connect-src 'self' {socket_origin}; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)


class PageFiles:
    """The page and its script. `headers` are those of every answer."""

    def __init__(self, *, has_tls: bool) -> None:
        self._socket_scheme = "wss" if has_tls else "ws"
        self.headers = dict(PAGE_HEADERS)
        if not has_tls:  # browsers complain about it, and heed it on loopback only
            del self.headers["Cross-Origin-Opener-Policy"]
        folder = files(__package__ or "").joinpath("page")
        self._parts = [folder.joinpath(name).read_text("utf-8") for name in ("page.html", "page.css", "page.js")]
        self._mover = folder.joinpath(SCRIPT).read_text("utf-8")

    def read(self, name: str, host: str) -> tuple[str, str, dict[str, str]]:
        """Return text, content type and headers of the page (an empty name) or its script, for a Host header."""
        nonce = secrets.token_urlsafe(16)
        policy = _POLICY.format(nonce=nonce, socket_origin=f"{self._socket_scheme}://{host}")
        headers = {**self.headers, "Content-Security-Policy": policy}
        if name == SCRIPT:
            return self._mover, "text/javascript", headers
        html, style, script = self._parts
        text = html.replace("{{nonce}}", nonce).replace("{{style}}", style).replace("{{script}}", script)
        return text, "text/html", headers
