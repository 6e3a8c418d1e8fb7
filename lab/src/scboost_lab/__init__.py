"""Experiments, benchmarks and the command line of scboost. The library never imports this package."""
