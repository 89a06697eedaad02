"""Publishing: the guard, the staging folder, the atomic swap, the manifest."""
