"""The near end of a test of many flows: their sockets, the rounds of datagrams, the hops at which flows part."""
