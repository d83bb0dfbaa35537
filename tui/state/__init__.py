"""The state behind the screens: snapshots and readings that are made from events, without a screen or a clock.

It may import tui.interfaces, tui.text, presets and engine, but neither Textual nor Rich. Public names: cockpit
`CockpitState`; live_readings `LiveReadings`, `CockpitSnapshot`; endpoint `EndpointRates`, `EndpointSnapshot`;
instrument_values (frozen values of gauges and plots).
"""
