"""The names of other runtimes, for scripts that were written for them."""
