"""Records of topics for people."""
