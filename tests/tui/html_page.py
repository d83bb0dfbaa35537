"""A page of HTML as a browser reads it: its text, its elements, and the addresses that it would fetch."""

from html.parser import HTMLParser

VOID = {"meta", "br", "path", "use", "rect"}


class Page(HTMLParser):
    """What a browser makes of a page: its text, its elements, and what it would fetch."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take an element in; `<x/>` comes here as well."""
        self.tags.append(tag)
        self.open.append(tag)
        for name, value in attrs:
            if name in {"src", "href", "xlink:href", "srcset", "data", "action"}:
                self.fetched.append(value or "")
            if name == "id":
                self.ids.append(value or "")
            assert not name.startswith("on"), f"{name} would run something"

    def handle_endtag(self, tag: str) -> None:
        """Close what was opened."""
        while self.open and self.open[-1] != tag and self.open[-1] in VOID:
            self.open.pop()
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keep text, but not the style sheet."""
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        """All of it, in plain spaces."""
        return " ".join(" ".join(self.words).replace("\u00a0", " ").split())
