"""Why a link is not faster: a run's events become evidence, and rules turn the evidence into findings.

It may import engine.model, engine.results and presets, and no event loop. Public names: live `LiveDiagnosis`,
`EvidenceCollector`, `CeilingLookup`; diagnose `diagnose`; finding `Finding`, `finding_figures`, `read_findings`;
evidence `Evidence`, `link_evidence`; trial `Trial`; confirmation `find_experiments`, `judge_experiment`,
`Confirmation`; finding_words `why_words`; window_bounds `FlowWindows`. The other modules are internal.
"""
