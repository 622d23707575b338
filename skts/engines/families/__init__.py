"""The work that there is, and how its parts merge: a folder for each family. Knows no engine."""
