"""The algorithm: from a resolved specification and training data to a fitted ensemble."""
