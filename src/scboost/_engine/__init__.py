"""Engines that grow trees."""
