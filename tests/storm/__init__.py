"""A storm of kills, full disks and damaged files: `python -m tests.storm`, or `make storm`."""
