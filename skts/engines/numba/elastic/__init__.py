"""DTW, the dog-keeper distance, paths, search with a window, rotation invariance, on the CPU."""
