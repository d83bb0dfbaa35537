"""The apps and the command line.

May import presets and engine. From the lowest package up: text, state, services, report and rendering, widgets,
screens, the apps, cli. A worker process imports nothing of it, and a command that opens no app loads no Textual.
"""
