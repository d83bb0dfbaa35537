"""The commands that measure a path without a test of its rate: its MTU, its policers and shapers."""
