"""Resources of a fit: communicator, threads, storage and observers, passed explicitly as one context."""
