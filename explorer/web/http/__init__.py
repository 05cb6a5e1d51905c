"""What comes in over HTTP, and what browsers may do with what goes out."""
