"""Widgets: each takes frozen values by its `show` method, and knows neither connections nor services.

May import tui.rendering, tui.state and tui.text. Public: the class that each module is named after.
"""
