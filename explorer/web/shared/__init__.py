"""What several processes know together: caches, and what is soon forgotten; a file a place where it may be."""
