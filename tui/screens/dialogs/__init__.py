"""Modal dialogs: `prompts`, `export`, `help`, `peer_picker`, `preset_picker` and `settings`.

They import widgets, services and text, and answer by `dismiss`; every screen may open them.
"""
