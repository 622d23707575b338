"""This folder stands in for packages: it holds no tests but those of the emulator."""

collect_ignore = ["cupy", "cupyx"]
