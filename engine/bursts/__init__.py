"""Bursts of datagrams over one UDP socket, and the times at which their datagrams arrive, at either end."""
