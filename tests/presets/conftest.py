"""Settings of every test of this room."""

from hypothesis import settings

# Another program on the machine must not make a property fail: no example has to be quick.
settings.register_profile("presets", deadline=None)
settings.load_profile("presets")
