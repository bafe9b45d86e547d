"""The encodings of file version 2.0: one module each, decoder above encoder."""
