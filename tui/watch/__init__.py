"""A watch as the user sees it: values, words, widgets, and the screen. `running` carries it out."""
