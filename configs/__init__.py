"""Built-in YAML configs, installed as `qrl.configs`; each holds only what differs from the defaults in code."""
