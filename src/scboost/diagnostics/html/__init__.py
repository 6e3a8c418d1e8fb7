"""The HTML report: templates, style sheet, script and the code that fills them."""
