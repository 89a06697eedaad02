"""Validating: files held against the protocol; every finding has a code, a place and a sentence."""
