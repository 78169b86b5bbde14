"""Calls for asyncio. A call that waits for a device, or for another call of its model, holds no thread: the device makes a
descriptor readable, and then the event loop resumes the call. What a program computes on the host runs on a thread of
this module, because it may take any time and must not stop the event loop."""

import asyncio
import atexit
import contextvars
import functools
import itertools
import os
import queue
import threading
import time
import weakref

from ._halyard import Call, DeadlineExceededError, Waker, _is_main_interpreter

_WAITING = 2
_NEVER = 2**63 - 1
_LATE = 0.05  # seconds after its deadline at which a call is left alone, because a Python function in it does not end
_IDLE = 5 if _is_main_interpreter else 0  # seconds after which an unused thread ends; subinterpreters end only without threads


class _Threads:
    """Threads for the steps of calls: one for each step that runs at the same time. They do not delay the end of the process,
    unlike those of concurrent.futures."""

    def __init__(self):
        self._work = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._all = set()

    def run(self, work):
        if not self._idle.acquire(blocking=False):
            thread = threading.Thread(target=self._serve, name="halyard", daemon=True)
            self._all.add(thread)
            thread.start()
        self._work.put(work)

    def _serve(self):
        while True:
            try:
                work = self._work.get(timeout=_IDLE)
            except queue.Empty:
                if self._idle.acquire(blocking=False):
                    self._all.discard(threading.current_thread())
                    return
                continue  # the thread is taken, so that work is on its way
            work()
            del work
            self._idle.release()


    def join(self):
        """Waits for the threads at the end of a subinterpreter, which ends the process if one is left."""
        for thread in list(self._all):
            thread.join(timeout=1)


_threads = _Threads()
if not _is_main_interpreter:
    atexit.register(_threads.join)


def _forget_threads():
    global _threads
    _threads = _Threads()


os.register_at_fork(after_in_child=_forget_threads)  # the child has none of the threads


class _Wakers:
    """The state for one event loop: a Waker, and the futures of waiting calls."""

    def __init__(self, loop):
        self.waker = Waker()
        self.futures = {}
        self.numbers = itertools.count(1)
        loop.add_reader(self.waker.fileno(), self._ready)

    def _ready(self):
        numbers = self.waker.take()
        for number in list(self.futures) if numbers is None else numbers:
            future = self.futures.pop(number, None)
            if future is not None:
                _end(future)

    async def wait(self, loop, number, call, is_over):
        """Until is_over() is true. It is asked after each report about the call, and at its deadline."""
        while True:
            future = self.futures[number] = loop.create_future()  # first, so that no report is lost
            if is_over():
                return
            at = call.deadline()
            timer = None if at is None else loop.call_later(at - time.monotonic(), _end, future)
            try:
                await future
            finally:
                if timer is not None:
                    timer.cancel()


def _end(future, result=None):
    if not future.done():
        future.set_result(result)


_loops = weakref.WeakKeyDictionary()


def _wakers(loop):
    found = _loops.get(loop)
    if found is None:
        found = _loops[loop] = _Wakers(loop)
    return found


def _work(loop, future, context, step, arguments):
    try:
        outcome = context.run(step, *arguments), None
    except BaseException as error:  # also KeyboardInterrupt of a Python function
        outcome = None, error
    try:
        loop.call_soon_threadsafe(_end, future, outcome)
    except RuntimeError:  # the loop is closed
        pass


async def _step(loop, deadline, step, *arguments):
    """Runs a step on a thread. If the task is cancelled, or long after the deadline, the step is left alone."""
    future = loop.create_future()
    _threads.run(functools.partial(_work, loop, future, contextvars.copy_context(), step, arguments))
    del step, arguments
    if deadline == _NEVER:
        state, error = await future
    else:
        try:
            async with asyncio.timeout((deadline - time.monotonic_ns()) * 1e-9 + _LATE):
                state, error = await future
        except TimeoutError:
            raise DeadlineExceededError("the time limit of the call passed while it ran a Python function") from None
    if error is not None:
        try:
            raise error
        finally:
            del error
    return state


async def call_async(function, arguments, deadline, out):
    """`deadline` is in nanoseconds of time.monotonic_ns(); _NEVER: no deadline."""
    loop = asyncio.get_running_loop()
    wakers = _wakers(loop)
    number = next(wakers.numbers)
    call = Call(function, wakers.waker, number, deadline)

    def has_turn():
        if call.enter():
            return True
        if time.monotonic_ns() >= deadline:
            raise DeadlineExceededError("the time limit of the call passed while it waited for another call of this model")
        return False

    def continues():
        return call.poll() != _WAITING

    try:
        await wakers.wait(loop, number, call, has_turn)  # a context takes one call at a time
        state = await _step(loop, deadline, call.begin, *arguments)
        while state:
            if state == _WAITING:
                await wakers.wait(loop, number, call, continues)
            state = call.poll() and await _step(loop, deadline, call.resume)
        return call.results(out)
    finally:
        wakers.futures.pop(number, None)
        call.close()  # a traceback may keep the call
