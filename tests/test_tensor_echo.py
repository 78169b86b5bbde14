"""The example server, examples/cpp/tensor_echo.cpp: thousands of calls that wait at once on two threads, tensors of all
sizes, requests that are wrong, an orderly stop. HALYARD_ECHO_CALLS sets how many calls (1,000)."""
import os
import re
import signal
import socket
import struct
import subprocess

import vmrun
from installed import BUILD

CALLS = int(os.environ.get("HALYARD_ECHO_CALLS", "1000"))
CONNECTIONS = 50
HEADER = struct.Struct("<QIIIIQ")  # id, status, element type, rank, 0, bytes
F32 = 0x21000020
INVALID_ARGUMENT, CANCELLED = 3, 1


class Server:
    def __init__(self, *flags):
        self.process = subprocess.Popen([BUILD / "examples" / "bin" / "tensor-echo", *flags], stdout=subprocess.PIPE, text=True)
        self.port = int(re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n", self.process.stdout.readline())[1])

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=900)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def stop(self):
        """(requests served, most in flight)"""
        self.process.send_signal(signal.SIGTERM)
        printed = self.process.communicate(timeout=900)[0]
        assert self.process.returncode == 0, f"exit status {self.process.returncode}"
        served, most = re.fullmatch(r"served (\d+) requests, at most (\d+) in flight\n", printed).groups()
        return int(served), int(most)


def request(number, shape, data):
    return HEADER.pack(number, 0, F32, len(shape), 0, len(data)) + struct.pack(f"<{len(shape)}q", *shape) + data


def exactly(connection, size):
    parts = []
    while size > 0:
        part = connection.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def response(connection):
    """(id, status, shape, bytes)"""
    number, status, element_type, rank, _, size = HEADER.unpack(exactly(connection, HEADER.size))
    shape = struct.unpack(f"<{rank}q", exactly(connection, 8 * rank))
    assert status != 0 or element_type == F32
    return number, status, shape, exactly(connection, size)


def elements(number, count):
    return struct.pack(f"<{count}f", *((number * 7 + i) % 1000 for i in range(count)))


def many_at_once():
    """All calls are in flight before the first one is answered."""
    server = Server(f"--hold={CALLS}", f"--limit={CALLS}")
    connections = [server.connect() for _ in range(CONNECTIONS)]
    for place, connection in enumerate(connections):
        connection.sendall(b"".join(request(n, (2, 3), elements(n, 6)) for n in range(place, CALLS, CONNECTIONS)))
    answered = 0
    for place, connection in enumerate(connections):
        left = set(range(place, CALLS, CONNECTIONS))
        while left:
            number, status, shape, data = response(connection)
            left.remove(number)
            assert (status, shape, data) == (0, (2, 3), elements(number, 6)), (number, status, shape)
            answered += 1
    for connection in connections:
        connection.close()
    served, most = server.stop()
    assert served == answered == CALLS and most == CALLS, (served, answered, most)
    return most


def sizes_and_mistakes():
    server = Server("--limit=4")
    connection = server.connect()
    for number, count in enumerate([0, 1, 15, 16, 17, 4096, 1 << 18, 1 << 20]):
        data = os.urandom(4 * count)
        connection.sendall(request(number, (count,), data))
        assert response(connection) == (number, 0, (count,), data)
    connection.sendall(request(7, (), elements(7, 1)))  # a tensor without dimensions
    assert response(connection) == (7, 0, (), elements(7, 1))
    connection.sendall(request(8, (5,), elements(8, 4)))  # a size that is not that of the shape
    number, status, shape, text = response(connection)
    assert (number, status, shape) == (8, INVALID_ARGUMENT, ()) and b"INVALID_ARGUMENT" in text, text
    connection.sendall(b"".join(request(n, (1,), elements(n, 1)) for n in range(100)))  # more than the limit
    assert {response(connection)[0] for _ in range(100)} == set(range(100))
    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(1) == b""
    for wrong in (HEADER.pack(1, 0, F32, 17, 0, 4), HEADER.pack(1, 0, F32, 1, 0, 1 << 60)):
        connection = server.connect()
        connection.sendall(wrong)
        assert connection.recv(1) == b""
    for cut in (1, HEADER.size, HEADER.size + 3, HEADER.size + 8):  # peers that go in the middle
        connection = server.connect()
        connection.sendall(request(1, (1,), elements(1, 1))[:cut])
        connection.close()
    connection = server.connect()
    connection.sendall(request(9, (1,), elements(9, 1)))
    assert response(connection)[0] == 9
    server.stop()


def stop_while_calls_wait():
    for seconds in (0.2, 1, 5, 25):  # on a busy machine, not all may have come
        server = Server("--hold=1000000")
        connection = server.connect()
        connection.sendall(b"".join(request(n, (1,), elements(n, 1)) for n in range(20)))
        connection.settimeout(seconds)
        try:
            connection.recv(1)
            raise AssertionError("a call that is held was answered")
        except TimeoutError:
            pass
        count = server.stop()[1]
        if count == 20:
            return
    raise AssertionError(f"{count} calls, not 20")


def main():
    if not (BUILD / "examples" / "bin" / "tensor-echo").exists():
        vmrun.skip("tensor-echo is not built")
    print(f"{many_at_once()} calls were in flight at once")
    sizes_and_mistakes()
    stop_while_calls_wait()
