"""Input data: tables of any library, their encoding as float matrices, and batches larger than memory."""
