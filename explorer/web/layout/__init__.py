"""What stands where on the page."""
