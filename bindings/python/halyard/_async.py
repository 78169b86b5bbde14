"""Calls for asyncio. A call that waits for a device holds no thread: the device makes a descriptor readable, and then the
event loop resumes the call."""

import asyncio
import itertools
import time
import weakref

from ._halyard import Call, DeadlineExceededError, Waker

_READY, _WAITING = 1, 2
_NEVER = 2**63 - 1


class _Wakers:
    """The state for one event loop: a Waker, the futures of waiting calls, and a lock for each context in use."""

    def __init__(self, loop):
        self.waker = Waker()
        self.futures = {}
        self.locks = {}
        self.numbers = itertools.count(1)
        loop.add_reader(self.waker.fileno(), self._ready)

    def _ready(self):
        numbers = self.waker.take()
        for number in list(self.futures) if numbers is None else numbers:
            future = self.futures.pop(number, None)
            if future is not None:
                _end(future)


def _end(future):
    if not future.done():
        future.set_result(None)


_loops = weakref.WeakKeyDictionary()


def _wakers(loop):
    found = _loops.get(loop)
    if found is None:
        found = _loops[loop] = _Wakers(loop)
    return found


async def _acquire(lock, deadline):
    if deadline == _NEVER:
        await lock.acquire()
        return
    try:
        async with asyncio.timeout((deadline - time.monotonic_ns()) * 1e-9):
            await lock.acquire()
    except TimeoutError:
        error = DeadlineExceededError("the time limit of the call passed while it waited for another call of this model")
        raise error from None


async def call_async(function, arguments, deadline):
    """`deadline` is in nanoseconds of time.monotonic_ns(); _NEVER: no deadline."""
    loop = asyncio.get_running_loop()
    wakers = _wakers(loop)
    context = function.context
    lock, users = wakers.locks.get(context, (None, 0))
    wakers.locks[context] = (lock := lock or asyncio.Lock(), users + 1)
    try:
        await _acquire(lock, deadline)  # a context takes one call at a time
        try:
            return await _run(loop, wakers, function, arguments, deadline)
        finally:
            lock.release()
    finally:
        lock, users = wakers.locks.pop(context)
        if users > 1:
            wakers.locks[context] = (lock, users - 1)


async def _run(loop, wakers, function, arguments, deadline):
    number = next(wakers.numbers)
    call = Call(function, wakers.waker, number, deadline)
    timer = None
    try:
        state = call.begin(*arguments)
        while state:
            if state == _READY:
                await asyncio.sleep(0)
            else:
                future = wakers.futures[number] = loop.create_future()
                at = call.deadline()
                if at is not None:
                    timer = loop.call_later(at - time.monotonic(), _end, future)
                await future
                if timer is not None:
                    timer.cancel()
            state = call.resume()
        return call.results()
    finally:  # deleting a call that has not ended cancels it
        wakers.futures.pop(number, None)
        if timer is not None:
            timer.cancel()
        del call
