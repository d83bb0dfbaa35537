"""Endpoints that announce themselves on this LAN by multicast DNS (RFC 6762, RFC 6763).

Only `announcer` and `finder` know zeroconf, which is the extra `linkgauge[discover]`. Anyone on the LAN can
announce anything: received announcements are bounded and made printable, and nothing connects to them by itself.
Public: `announcement` (Announcement, FoundEndpoint), `announcer` (announced), `finder` (find_endpoints).
"""
