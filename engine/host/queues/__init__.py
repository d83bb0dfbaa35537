"""What waits to be sent at an interface of this host, and what the kernel drops there and at its sockets."""
