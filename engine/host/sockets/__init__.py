"""The sockets of all programs of this host: sock_diag(7), and the processes that own them."""
