"""The names of other runtimes, so that scripts written for them run."""
