"""Everything that touches a socket, a clock or a CPU counter, and the pure protocol beneath it."""
