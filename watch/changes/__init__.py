"""Changes of level: whether a figure of a peer is another than before, each change once.

Public: `level_watch` (LevelWatch, which is fed one value a cycle), `effects` (the least change that is one, by
metric), `median_interval` (a level's median and its 95 % interval). Pure and deterministic: the same values give
the same changes, so that a watch that is started again feeds what its journal has.
"""
