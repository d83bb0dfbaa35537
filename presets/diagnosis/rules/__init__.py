"""TODO presets/diagnosis/rules."""
