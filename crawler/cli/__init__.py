"""The command line: what was typed becomes settings, settings become one call, errors become one sentence. A command, a file."""
