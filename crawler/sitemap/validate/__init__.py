"""Validation against the protocol. Every finding has a code, a place and a sentence."""
