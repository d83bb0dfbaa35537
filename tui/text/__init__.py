"""All numbers and sentences that a person reads, and the parsing of what a person types. Pure.

It may import engine.model, engine.results and presets, but neither Textual nor Rich. Public modules: numbers (every
format of a number), plan, summary, comparison, sweep, run_list; parsing for the other direction.
Import modules by name, `from ..text import numbers`, and write `numbers.rate(...)`.
"""
