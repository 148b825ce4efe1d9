"""What there is to say about a setting, variable, directive, port or rule of a deployment; knows no files."""
