"""The tabs of the HTML report, one module each: which numbers and charts its template shows."""
