"""The nouns: frozen data, imports the standard library and annotated_types only."""
