"""Registered worlds: qrl's own, a module each, and those of plugins."""
