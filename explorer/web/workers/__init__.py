"""Several server processes behind one address, so that one that exits does not end the others' work."""
