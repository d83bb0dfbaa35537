"""Changes of level and of the path: whether a peer differs from before, each change once.

Public: `level_watch` (LevelWatch, which takes one value a cycle; the minimum change of each metric), `path_watch`
(PathWatch, which takes the route of each test), `median_interval` (a level's median and its 95 % interval). Pure
and deterministic: the same values give the same changes, so that a restarted watch only has to read its journal.
"""
