"""Writing: entries in, compressed XML out, split by the limits of the protocol."""
