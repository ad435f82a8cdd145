"""The commands, one thin file each, installed as `qrl.scripts`."""
