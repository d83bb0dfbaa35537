"""What to expect of a link, whether a run delivers it, and if not, why.

May import the pure packages of the engine (model, results, the specification of lab links): no event loop, and
nothing of tui. Public: `catalog` (load_catalog), `expectation`, `auto_select`, `verdict` (judge), `sheet`, `wire`,
`baseline`, `lab_link`, and the package `diagnosis`.
"""
