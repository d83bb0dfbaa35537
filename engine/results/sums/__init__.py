"""Running sums over the samples of a run, in bounded memory.

The summary, the findings, the gauges and the reports all add up samples here, so that no two of them can differ.
A day's run has tens of millions of session samples, so none is kept: bytes, time and CPU are sums, and medians
come from histograms, which give the same answer for any order of the samples.

Pure. It imports engine/model, `rate_and_loss`, `confidence`, `summary` and `udp`. Public: `sample_sum` (SampleSum,
RecentSamples, SampleOrder) has the receiver's sums (ReceiverSum) and a `sender_sum` (SenderSum) of each direction
and an `end_sum` (EndSum) of each end; `session_sums` (SessionSums) has each session's own, `traces` (Traces) the
run over time. Below them: `field_sums` (Sums, whose fields combine) and `histogram`.
"""
