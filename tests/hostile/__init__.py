"""A hostile web on loopback, and what is right to make of it: `server` serves, `sites` says what and what is right."""
