"""Endpoints that announce themselves on this LAN by multicast DNS (RFC 6762, RFC 6763).

Only `announcer` and `finder` know zeroconf, which is the extra `linkgauge[discover]`. Whoever shares the LAN can
announce anything: what is received is bounded, made printable, and never connected to by itself.
Public: `announcement` (Announcement, FoundEndpoint), `announcer` (announced), `finder` (find_endpoints).
"""
