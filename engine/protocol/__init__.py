"""The protocol between two ends, without I/O: bytes in, messages out, and the reverse.

Imports engine/model, and neither asyncio nor socket. Public names: `state_machine` (ControlStateMachine),
`messages` (one class for each), `framing` (frames, their codes, compression), `preamble` (the first bytes of every
connection), `tokens` (of data connections), `peer_validation` (PeerValidator).
"""
