"""The embedded frontier: one SQLite file, or `:memory:`."""
