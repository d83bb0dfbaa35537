"""Which flows differ: one bad member of a group of parallel links, from the counts of many flows. Pure."""
