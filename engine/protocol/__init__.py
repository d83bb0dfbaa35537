"""The protocol between two ends, without I/O: bytes in, messages out, and the reverse.

Imports engine/model, and neither asyncio nor socket. Public names: `state_machine` (ControlStateMachine),
`messages` (one class for each), `framing` (frames and compression), `preamble` (the first bytes of every
connection), `auth` (proofs and tickets), `peer_validation` (PeerValidator).
"""
