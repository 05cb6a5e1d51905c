"""Several processes behind one address: each has its own interpreter, and one that dies takes nobody's text along."""
