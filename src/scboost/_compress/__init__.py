"""Compression of any fitted model into a few trees; the public name is :func:`scboost.compress`."""
