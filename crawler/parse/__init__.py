"""What strangers wrote, read: bytes in, values out. Total, bounded and pure: nothing here raises, waits, or reads a clock."""
