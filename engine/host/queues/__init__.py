"""The queue at an interface of this host, and the packets that the kernel drops there and at its sockets."""
