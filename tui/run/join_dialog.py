"""The dialog with which a device joins: the link to the page, the code, and both as a QR code."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from ..kit.drawing.styles import BAD, MUTED
from ..kit.screens.base_screen import Dialog
from ..readings.waited_device import WaitedDevice
from ..words import numbers


class JoinDialog(Dialog[None]):
    """Shows the way to join. `show` renews it; the screen below closes it when a device has joined."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,c,enter", "back", show=False)]
    DEFAULT_CSS = """
    JoinDialog {
        & > Vertical {
            width: auto; max-width: 100%; max-height: 100%; padding: 0 1; overflow: auto; scrollbar-size: 1 1;
        }
        & Horizontal { width: auto; height: auto; }
        & #join-code { width: auto; height: auto; }
        & #join-words { width: 36; height: auto; padding: 1 0 0 2; }
    }
    """

    def __init__(self, device: WaitedDevice) -> None:
        super().__init__()
        self._device = device

    def compose(self) -> ComposeResult:
        """Compose the QR code, with the words beside it."""
        with Vertical() as box:
            box.border_title = Content("a device joins")
            box.border_subtitle = Content("esc back   c shows this again")
            with Horizontal():
                yield Static(id="join-code", markup=False)
                yield Static(id="join-words", markup=False)

    def on_mount(self) -> None:
        """Show the code."""
        self.show(self._device)

    def show(self, device: WaitedDevice) -> None:
        """Show this code."""
        self._device = device
        self.query_one("#join-code", Static).update(Content.styled("\n".join(device.page_code), "white on black"))
        self.query_one("#join-words", Static).update(_words(device))


def _words(device: WaitedDevice) -> Content:
    """Return what to do on the device."""
    taken = (
        f"{device.name or 'A browser'} takes part. The next device that joins takes its place."
        if device.peer
        else ""
    )
    parts = [
        ("With the camera of a phone or tablet: the code on the left.\n\n", ""),
        ("Or open\n", MUTED),
        (f"{numbers.sanitize(device.link)}\n", "bold $text-primary"),
        ("and type\n", MUTED),
        (device.code_text, "bold"),
        (f"\n\n{numbers.sanitize(taken)}" if taken else "", MUTED),
        (f"\n\n{numbers.sanitize(device.news)}." if device.is_problem else "", BAD),
        (f"\n\n{_privacy(device)}", MUTED),
    ]
    return Content.assemble(*parts)


def _privacy(device: WaitedDevice) -> str:
    """Return what others can read, or by what the certificate is known that a browser asks about."""
    if not device.fingerprint:
        return "Plain HTTP: others on this network can read the results."
    half = len(device.fingerprint) // 2
    lines = f"{device.fingerprint[:half]}\n{device.fingerprint[half:]}"
    return f"If the browser warns, compare the certificate's SHA-256 fingerprint:\n{lines}"
