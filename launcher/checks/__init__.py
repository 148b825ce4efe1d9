"""What checks ask, and what the answers mean; knows no connection and no file."""
