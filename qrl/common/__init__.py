"""What every part may import: settings, errors, atomic files, name suggestions. Never imports torch."""
