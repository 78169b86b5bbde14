"""What the tests of vm-serve share: the programs that are served, requests, and a folder for files."""
import json
import os
import socket
import tempfile
import time
import unittest

import vmrun
from serve_client import Server, binary_request, packed, tensor

PROGRAM = os.path.join(vmrun.BIN, "vm-serve")
MUL = os.path.join(vmrun.SOURCE, "examples", "inline_mul.vmasm")
FIB = os.path.join(vmrun.SOURCE, "examples", "fib.vmasm")
ENCODER = os.path.join(vmrun.SOURCE, "examples", "serving", "encoder.vmasm")
ELEMENTWISE = os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm")


def start(*flags, **options):
    return Server(PROGRAM, *flags, **options)


def mul(values, other, **members):
    return {"inputs": [tensor("input0", "FP32", values), tensor("input1", "FP32", other)], **members}


def binary_mul(values, other, **members):
    return binary_request([("input0", "FP32", [len(values)], packed("FP32", values)),
                           ("input1", "FP32", [len(other)], packed("FP32", other))], **members)


def resident(server):
    """Bytes of memory of the server's process."""
    with open(f"/proc/{server.process.pid}/status") as file:
        return int(next(line for line in file if line.startswith("VmRSS")).split()[1]) << 10


def raw(server, data, limit=240):
    """Everything that the server answers until it closes the connection."""
    with server.socket(limit) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the server has answered, and closed the connection, before it had all
        return read_all(connection)


def read_all(connection):
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def post(body, path="/v2/models/mul/infer", headers=""):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


class Folder(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory(prefix="halyard-serve-")
        self.folder = self.holder.name
        self.addCleanup(self.holder.cleanup)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        vmrun.write(path + ".new", text)
        os.rename(path + ".new", path)
        return path
