"""What a catalog is: its words and its ports. No HTTP, no storage."""
