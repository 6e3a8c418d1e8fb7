"""Model documents and files: reading, checking and writing them."""
