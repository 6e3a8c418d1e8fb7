"""Data: tables, encoding, batches, folds and row keys."""
