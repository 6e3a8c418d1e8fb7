"""Tree engines: the interface, and one module or package per engine."""
