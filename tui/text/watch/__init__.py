"""A watch as text: `watch_sentences` (events, changes), `watch_figures` (levels, times). Pure."""
