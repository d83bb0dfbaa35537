"""The parts that every screen is made of. They know no feature.

`actions` is the one registry of keys, footer, help and palette. `drawing` draws characters, lines and frames.
`widgets` has lists, footer and fields, `screens` has the base classes and the dialogs of all screens.
"""
