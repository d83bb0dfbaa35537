"""What all screens and dialogs share: the keys' page, and Escape."""

from linkgauge.tui.kit.screens.base_screen import Dialog
from textual.app import App, ComposeResult
from textual.containers import Vertical


class Question(Dialog[str]):
    """A dialog without an answer yet."""

    def compose(self) -> ComposeResult:
        """Show its box."""
        yield Vertical()


async def test_escape_closes_a_dialog_with_the_answer_none() -> None:
    """Its caller is called back once."""
    app: App[None] = App()
    answers: list[str | None] = []
    async with app.run_test() as pilot:
        await app.push_screen(Question(), answers.append)
        await pilot.press("escape")
        await pilot.pause()
        assert answers == [None]
        assert not isinstance(app.screen, Question)
