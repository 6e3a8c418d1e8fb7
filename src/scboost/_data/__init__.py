"""Data: tables, encoding, batches, folds and hashed keys."""
