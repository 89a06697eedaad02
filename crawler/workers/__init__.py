"""Worker processes, which make visits and may crash, and the sandbox for risky markup."""
