"""Clients of networkQuality at an endpoint (draft-ietf-ippm-responsiveness): their requests over HTTP/2 and tests.

Only `nq_connection` and `bodies` know h2, of the extra `linkgauge[nq]`.
Public: nq_service (NqService).
"""
