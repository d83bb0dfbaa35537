"""A few pieces of HTML, with every text escaped. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class Markup:
    """HTML that is safe already, because it was made here or by the plots."""

    text: str


Content = str | Markup | None


def markup(content: Content) -> str:
    """Return content as HTML; whatever is plain text is escaped."""
    if content is None:
        return ""
    return content.text if isinstance(content, Markup) else escape(content)


def element(name: str, *parts: Content, css_class: str = "") -> Markup:
    """Return an element around its parts; `kind` is its class."""
    attribute = f' class="{escape(css_class)}"' if css_class else ""
    return Markup(f"<{name}{attribute}>{''.join(markup(part) for part in parts)}</{name}>")


def join(parts: Iterable[Content]) -> Markup:
    """Return parts one after the other."""
    return Markup("\n".join(markup(part) for part in parts))


def section(title: str, *parts: Content, css_class: str = "") -> Markup:
    """Return a section with its heading; nothing where it would have no content."""
    if not any(markup(part) for part in parts):
        return Markup("")
    return element("section", element("h3", title), *parts, css_class=css_class)


def table(head: Sequence[str], rows: Sequence[Sequence[Content]], *, text_columns: int = 1) -> Markup:
    """Return a table of numbers, aligned to the right but for its first column and the last `words` - 1."""
    if not rows:
        return Markup("")

    def kind(column: int) -> str:
        return "" if 0 < column <= len(head) - text_columns else "words"

    heads = [element("th", name, css_class=kind(number)) for number, name in enumerate(head)]
    lines = [
        element("tr", *(element("td", cell, css_class=kind(number)) for number, cell in enumerate(row)))
        for row in rows
    ]
    return element("table", element("thead", element("tr", *heads)), element("tbody", *lines))


def definition_list(rows: Iterable[tuple[str, Content]]) -> Markup:
    """Return names with what they stand for; those that stand for nothing are left out."""
    pairs = [(name, value) for name, value in rows if markup(value)]
    return element("dl", *(join((element("dt", name), element("dd", value))) for name, value in pairs))
