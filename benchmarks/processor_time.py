"""The processor time of a benchmark's child processes."""
import resource


def of_children():
    """Seconds of user and system time of all children that have ended. The kernel counts the sum exactly, but divides it by ticks
    of a few milliseconds, so either part alone can be wrong by a third in a short process."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
