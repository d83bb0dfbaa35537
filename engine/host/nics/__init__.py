"""The network interfaces of this host: which one carries a connection, its line, and its counters."""
