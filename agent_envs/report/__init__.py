"""Records as people read them."""
