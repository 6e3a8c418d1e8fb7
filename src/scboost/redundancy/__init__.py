"""Seeing and removing redundancy in any tree ensemble."""
