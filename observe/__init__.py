"""Why is this transfer slow: the diagnosis of TCP connections of other programs, by the kernel's figures alone."""
