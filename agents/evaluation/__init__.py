"""Planning and distances scored against the ground truth: metrics, pictures and the report."""
