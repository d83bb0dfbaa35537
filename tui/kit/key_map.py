"""The keys of actions as the user has them: the registry's, a preset such as `vim`, and the user's own on top.

Textual binds them (`App.set_keymap`): the id of a binding is that of its action. This module checks the keys, and
names them for the footer, the help page and the palette.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Final, cast

from textual.binding import Binding
from textual.keys import Keys, format_key

from .actions import ACTIONS, MOVEMENTS, Action, ScreenKind, key_name

PRESET: Final = "preset"
KEY_PRESETS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "vim": {
        "move_up": ("k", "up"),
        "move_down": ("j", "down"),
        "move_left": ("h", "left"),
        "move_right": ("l", "right"),
        "move_page_up": ("ctrl+b", "ctrl+u", "pageup"),
        "move_page_down": ("ctrl+f", "ctrl+d", "pagedown"),
        "move_first": ("g", "home"),
        "move_last": ("G", "end"),
        # The keys that these had before.
        "slower": ("{",),
        "faster": ("}",),
        "sweep": ("z",),
    }
}


def _labelled(action: Action) -> Iterable[tuple[str, str]]:
    return zip(action.keys, action.key_labels or action.keys, strict=True)


_ALL: Final = (*ACTIONS, *MOVEMENTS)
_RESERVED: Final = {"ctrl+p": "the palette", "tab": "the next part of the screen", "shift+tab": "the part before"}
_LABELS: Final = {key: label for action in _ALL for key, label in _labelled(action)}
_NAMED: Final = {key.value for key in Keys} | _LABELS.keys()
_ALLOWED: Final = "give a character, or a name such as space, f5 or ctrl+r; a list of them for several"


class KeyMistake(Exception):
    """A key of the user cannot be used. `action` is the name in the table, the text says why."""

    def __init__(self, action: str, text: str) -> None:
        super().__init__(text)
        self.action = action


class KeyMap:
    """The keys of every action.

    Args:
        chosen: By the ids of actions, a key or a list of keys; under `preset`, a name of KEY_PRESETS.

    Raises:
        KeyMistake: An action or a key is unknown, or two actions of a screen have the same key.
    """

    def __init__(self, chosen: Mapping[str, object] | None = None) -> None:
        own = {**(chosen or {})}
        preset = own.pop(PRESET, None)
        if preset is not None and preset not in list(KEY_PRESETS):
            raise KeyMistake(PRESET, f"{PRESET} {preset!r} is invalid; give {' or '.join(KEY_PRESETS)}")
        keys: dict[str, tuple[str, ...]] = {**KEY_PRESETS[str(preset)]} if preset is not None else {}
        keys |= {name: _keys_of(name, value) for name, value in own.items()}
        self._keys = {name: tuple(map(_textual_name, each)) for name, each in keys.items()}
        self.textual = {name: ",".join(each) for name, each in self._keys.items()}
        """For `App.set_keymap`."""
        self.names = {name: _label(each[0]) for name, each in self._keys.items()}
        """The first key of each action that has other keys than usual, as texts name it."""
        for screen in ScreenKind:
            self._check(screen, own)

    def own(self, action: Action) -> Action:
        """Return an action with the keys that it has here."""
        keys = self._keys.get(action.id)
        return action if keys is None else replace(action, keys=keys, key_labels=tuple(map(_label, keys)))

    def actions_of(self, screen: ScreenKind) -> list[Action]:
        """Return the actions of a screen, with their keys."""
        return [self.own(action) for action in ACTIONS if screen in action.screens]

    def movements(self) -> list[Action]:
        """Return the movements of lists that have other keys than usual."""
        return [self.own(action) for action in MOVEMENTS if action.id in self._keys]

    def name_of(self, action_id: str) -> str:
        """Return the first key of an action, as texts name it."""
        return key_name(action_id, self.names)

    def _check(self, screen: ScreenKind, own: Mapping[str, object]) -> None:
        """Raise KeyMistake for a key of two actions of a screen."""
        owners: dict[str, str] = {}
        for action in [*self.actions_of(screen), *(self.own(each) for each in MOVEMENTS if screen in each.screens)]:
            for key in action.keys:
                if action.id in self._keys and key in _RESERVED:
                    raise KeyMistake(action.id, f"{action.id} = {_label(key)!r} is the key of {_RESERVED[key]}")
                if key in owners:
                    pair = (action.id, owners[key]) if action.id in own else (owners[key], action.id)
                    raise KeyMistake(
                        pair[0] if pair[0] in own else PRESET,
                        f"{pair[0]} = {_label(key)!r} is also the key of {pair[1]} on the screen {screen.value!r};"
                        " give one of them another key",
                    )
                owners[key] = action.id


def _keys_of(name: str, value: object) -> tuple[str, ...]:
    known = {action.id for action in _ALL}
    if name not in known:
        nearest = get_close_matches(name, known, n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else "docs/settings.md lists the actions"
        raise KeyMistake(name, f"there is no action {name[:40]!r}; {hint}")
    is_list = isinstance(value, list)
    keys = cast("list[object]", value) if is_list else [value]
    if not keys or not all(isinstance(key, str) and _is_key(key) for key in keys):
        given = keys if is_list else keys[0]
        raise KeyMistake(name, f"{name} {str(given)[:40]!r} is invalid; {_ALLOWED}")
    return tuple(map(str, keys))


def _is_key(key: str) -> bool:
    return (len(key) == 1 and key.isprintable() and key not in " ,") or key in _NAMED


def _textual_name(key: str) -> str:
    """Return Textual's name of a key: `slash` of `/`."""
    return next(iter(Binding.make_bindings([Binding(key, "")]))).key


def _label(key: str) -> str:
    text = _LABELS.get(key) or format_key(key).replace("ctrl+", "^")
    return text.upper() if key[:1] == "f" and key[1:].isdecimal() else text


def keys_template() -> str:
    """Return the table of keys for a file of settings: every action with its keys, as comments."""
    lines = [
        "# Keys of the app, one or a list for an action; each is a character, or a name such as space or ctrl+r.",
        "#[keys]",
        f"#{PRESET} = {json.dumps(next(iter(KEY_PRESETS)))}  # moves in lists, tables and maps as vim does",
    ]
    for action in {action.id: action for action in _ALL}.values():
        names = [label if len(label) == 1 and label.isascii() else key for key, label in _labelled(action)]
        keys = json.dumps(names[0] if len(names) == 1 else names)
        lines.append(f"#{action.id} = {keys}  # {action.title or action.help.rstrip('.')}")
    return "\n".join([*lines, ""])
