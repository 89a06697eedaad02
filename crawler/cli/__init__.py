"""The command line, one file per command: arguments become settings, a call, and for errors a sentence."""
