"""The numbers of a report, one module per subject; :mod:`scboost.diagnostics.html` shows them."""
