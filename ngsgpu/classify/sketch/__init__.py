"""Minhash sketches of windows, of references and reads alike."""
