"""Datagrams in the results of a run: their sums, and where and in which pattern they were lost.

Pure. It imports engine/model, `rate_and_loss` and `summary`; `sums`, meter, JSON and the diagnosis read it.
Public: `datagram_sums` (DatagramSum), `tail_losses` (TailLosses), `loss_location`,
`loss_pattern`, `packet_overhead`, `interval_figures`.
"""
