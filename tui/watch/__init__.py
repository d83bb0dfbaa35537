"""A watch as the user sees it: values, sentences, widgets, and the screen. `session` carries it out."""
