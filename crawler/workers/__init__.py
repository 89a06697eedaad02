"""Worker processes: visits made by processes that may die, and the sandbox for risky markup."""
