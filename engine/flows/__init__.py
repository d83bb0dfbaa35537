"""Datagrams on many flows in turn, and the delay of each one that arrives, at either end."""
