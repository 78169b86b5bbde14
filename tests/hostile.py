"""Connections that do a server harm without breaking a rule of TCP: silent, slow, deaf, half closed, and such. For the test and
the benchmark, which hold a thousand of each kind beside a good client."""
import json
import resource
import socket
import time

HEAD = b"POST /v2/models/mul/infer HTTP/1.1\r\nHost: localhost\r\n"
ANSWER_SIZE = 1 << 16  # numbers of the answer that nobody reads


def _inputs(count):
    return json.dumps({"inputs": [{"name": name, "datatype": "FP32", "shape": [count], "data": [0.123456] * count}
                                  for name in ("input0", "input1")]}).encode()


BODY = _inputs(200)
LARGE = _inputs(ANSWER_SIZE // 64)


def _request(body):
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


# The first bytes of a connection, the byte that it repeats at intervals ("": none), its last action, and whether the server
# keeps the connection open for now.
KINDS = {
    "silent": (b"", b"", None, True),
    "silent head": (b"POST /v2/models/mul/in", b"", None, True),
    "slow head": (HEAD + b"X: ", b"x", None, True),
    "silent body": (HEAD + b"Content-Length: 60000000\r\n\r\n", b"", None, True),
    "slow body": (HEAD + b"Content-Length: 60000000\r\n\r\n{", b" ", None, True),
    "silent chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"", None, True),
    "slow chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", b"1\r\n \r\n", None, True),
    "silent gzip": (HEAD + b"Content-Encoding: gzip\r\nContent-Length: 60000000\r\n\r\n\x1f\x8b", b"", None, True),
    "waits to be told": (HEAD + b"Expect: 100-continue\r\nContent-Length: 60000000\r\n\r\n", b"", None, True),
    "never reads": (_request(LARGE) * 2, b"", "deaf", True),
    "half closed": (HEAD + b"Content-Length: 100\r\n\r\n{", b"", "shutdown", False),
    "pipelined garbage": (_request(BODY) + b"\x00\xff garbage \r\n\r\n" * 20, b"", None, False),
    "smuggling": (HEAD + b"Transfer-Encoding: gzip\r\n\r\n" + _request(BODY), b"", None, False),
    "foreign page": (HEAD + b"Origin: http://evil.example\r\nContent-Length: 0\r\n\r\n", b"", None, True),
}


class Hostile:
    """So many connections of a kind to a server on this machine."""

    def __init__(self, kind, port, count):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        first, self.drop, what, self.is_kept = KINDS[kind]
        self.sockets = []
        self.turn = 0
        for _ in range(count):
            connection = socket.socket()
            if what == "deaf":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", port))
            self.sockets.append(connection)
            try:
                connection.sendall(first)
                if what == "shutdown":
                    connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it has been closed already

    def poke(self, count=20):
        """Some of them send their next byte."""
        for _ in range(count if self.drop else 0):
            self.turn = (self.turn + 1) % len(self.sockets)
            try:
                self.sockets[self.turn].send(self.drop)
            except OSError:
                pass

    def close(self):
        for connection in self.sockets:
            connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def good_requests(connection, count, between=lambda: None):
    """Times of requests in seconds, sorted; an answer that is not right is an error. While a thousand others have their requests
    answered, the queue of the model may be full: then the client tries again, and the time goes on."""
    times = []
    for i in range(count):
        between()
        body = json.dumps({"inputs": [{"name": name, "datatype": "FP32", "shape": [3], "data": [i, 2, 3]} for name in ("input0", "input1")]})
        begin = time.perf_counter()
        while True:
            connection.request("POST", "/v2/models/mul/infer", body)
            response = connection.getresponse()
            answer = response.read()
            if response.status != 503 or b"is full" not in answer:
                break
            time.sleep(.001)
        times.append(time.perf_counter() - begin)
        if response.status != 200 or json.loads(answer)["outputs"][0]["data"] != [i * i, 4, 9]:
            raise AssertionError(f"request {i}: {response.status} {answer[:300]!r}")
    return sorted(times)


def percentile(times, part):
    return times[min(len(times) - 1, int(len(times) * part))]
