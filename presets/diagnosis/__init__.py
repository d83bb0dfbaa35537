"""Why a link is not faster: a run's events become evidence, and rules turn the evidence into findings.

It may import engine.model, engine.results and presets, and no event loop. Public names: live `LiveDiagnosis`;
diagnose `diagnose`, `findings_json`, `read_findings`; finding `Finding`; evidence `Evidence`, `link_evidence`;
collect `EvidenceCollector`, `CeilingLookup`. The other modules are internal.
"""
