"""The command line, one file per command: arguments become settings, settings become one call, errors one sentence."""
