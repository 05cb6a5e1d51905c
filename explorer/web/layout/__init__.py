"""Layout of the page's widgets."""
