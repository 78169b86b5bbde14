"""A call over HTTP/2 that sends only a part of its message, as no library for clients does. For tests of vm-serve's gRPC service."""
import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
ACKNOWLEDGED, END_HEADERS = 1, 4
INITIAL_WINDOW_SIZE = 4  # a setting
WINDOW = 65535
MAX_FRAME = 16384


def frame(kind, flags, stream, data=b""):
    return struct.pack(">I", len(data))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + data


def header(name, value):
    """A literal that is not added to the table of headers."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def headers(path):
    return b"".join(header(name, value) for name, value in ((b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"localhost"),
                                                            (b"content-type", b"application/grpc"), (b"te", b"trailers")))


class PartOfACall:
    """Announces a message of `announced` bytes and sends `most` bytes of it, as many as the server takes."""

    def __init__(self, address, path, announced, most):
        self.socket = socket.create_connection(address, timeout=240)
        self.windows = {0: WINDOW, 1: WINDOW}
        self.initial = WINDOW
        self.left = struct.pack(">BI", 0, announced) + bytes(most)
        self.sent = 0
        self.received = b""
        self.is_refused = False  # the server has ended the call, or closed the connection
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, 1, headers(path)))
        self.socket.setblocking(False)

    def step(self):
        """Receives and sends without waiting. False: nothing has happened."""
        before = (self.sent, len(self.received), self.is_refused)
        try:
            data = self.socket.recv(1 << 16)
            self.received += data
            self.is_refused |= not data
        except BlockingIOError:
            pass
        except OSError:
            self.is_refused = True
        self.take_frames()
        try:
            while not self.is_refused and (size := min(self.windows[0], self.windows[1], MAX_FRAME, len(self.left) - self.sent)) > 0:
                self.send(frame(DATA, 0, 1, self.left[self.sent:self.sent + size]))
                self.sent += size
                for stream in self.windows:
                    self.windows[stream] -= size
        except OSError:
            self.is_refused = True
        return before != (self.sent, len(self.received), self.is_refused)

    def take_frames(self):
        while len(self.received) >= 9 and len(self.received) >= 9 + (size := int.from_bytes(self.received[:3], "big")):
            kind, flags, stream = self.received[3], self.received[4], int.from_bytes(self.received[5:9], "big")
            data, self.received = self.received[9:9 + size], self.received[9 + size:]
            if kind == WINDOW_UPDATE:
                self.windows[stream] += int.from_bytes(data, "big")
            elif kind == SETTINGS and not flags & ACKNOWLEDGED:
                for name, value in struct.iter_unpack(">HI", data):
                    if name == INITIAL_WINDOW_SIZE:
                        self.windows[1] += value - self.initial
                        self.initial = value
                self.send(frame(SETTINGS, ACKNOWLEDGED, 0))
            elif kind == PING and not flags & ACKNOWLEDGED:
                self.send(frame(PING, ACKNOWLEDGED, 0, data))
            elif kind in (RESET, GOAWAY, HEADERS):
                self.is_refused = True

    def send(self, data):
        self.socket.settimeout(240)
        try:
            self.socket.sendall(data)
        except OSError:
            self.is_refused = True
        self.socket.setblocking(False)
