"""What the browser is answered."""
