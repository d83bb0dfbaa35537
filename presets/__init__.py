"""The expected rate of a link, the verdict on a run, and why a run is slower.

May import the pure packages of the engine (model, results, the specification of lab links): no event loop, and
nothing of tui. Public: `catalog` (load_catalog), `search`, `expectation`, `auto_select`, `verdict` (judge),
`datasheet`, `wire`, `baseline`, `lab_link`, `number_text` (the style of numbers), and the package `diagnosis`.
"""
