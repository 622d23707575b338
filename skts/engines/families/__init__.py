"""What is computed, and how parts merge: a folder for each family of work. Knows no engine."""
