"""The hops between two ends: `hop_strip` is the path in a line, `path_hops` its tables and sentences. Pure."""
