"""Training runs: settings, folder, checkpoints and the training loop."""
