"""Which hop has the queue or the loss.

`hop_judgement` decides it from both ends' traces, `path_result` has the result, `path_document` its shape in the
document of a run.
"""
