"""A client of vm-serve in Python's standard library, and the server as a process, for the tests and the benchmark."""
import http.client
import json
import re
import signal
import socket
import struct
import subprocess
import threading

FORMATS = {"BOOL": "?", "INT8": "b", "INT16": "h", "INT32": "i", "INT64": "q", "UINT8": "B", "UINT16": "H", "UINT32": "I",
           "UINT64": "Q", "FP16": "e", "FP32": "f", "FP64": "d"}


class Server:
    """vm-serve on a port that the system chooses, unless the flags say where. Lines of the log are kept."""

    def __init__(self, program, *flags, env=None, preexec=None, pass_fds=(), expect=1):
        flags = list(flags)
        if not any(flag.startswith(("--port", "--unix_socket")) for flag in flags) and not pass_fds:
            flags.append("--port=0")
        self.process = subprocess.Popen([program, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
                                        preexec_fn=preexec, pass_fds=pass_fds, stdin=subprocess.DEVNULL)
        self.log = []
        self.reader = threading.Thread(target=self._read_log, daemon=True)
        self.reader.start()
        self.addresses = []
        for _ in range(expect):
            line = self.process.stdout.readline()
            match = re.fullmatch(r"vm-serve: (http://(.*):(\d+)|unix:(.*)|gRPC at (.*))\n", line)
            if not match:
                self.process.kill()
                self.process.wait()
                self.reader.join()
                raise AssertionError(f"the server did not start: {line!r} {''.join(self.log)}")
            self.addresses.append(match[1])
            if match[3]:
                self.port = int(match[3])
            if match[5]:
                self.grpc = match[5]

    def _read_log(self):
        for line in self.process.stderr:
            self.log.append(line)

    def events(self, name):
        return [event for event in (json.loads(line) for line in list(self.log) if line.startswith("{")) if event["event"] == name]

    def connect(self, timeout=240):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def socket(self, timeout=240):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def get(self, path, method="GET", body=None, headers=None):
        """(status, headers, body as JSON or bytes)"""
        connection = self.connect()
        try:
            return ask(connection, path, method, body, headers)
        finally:
            connection.close()

    def infer(self, model, inputs, **members):
        """The response to a request in JSON: (status, document)."""
        status, _, document = self.get(f"/v2/models/{model}/infer", "POST", json.dumps({"inputs": inputs, **members}))
        return status, document

    def metric(self, name):
        """The value of one line of /metrics; 0 if there is none."""
        for line in self.get("/metrics")[2].decode().splitlines():
            if line.startswith(name + " "):
                return float(line.rsplit(" ", 1)[1])
        return 0.0

    def stop(self, how=signal.SIGTERM, timeout=120):
        """The exit status, after a signal unless `how` is None."""
        if how is not None and self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(timeout)
        self.reader.join(timeout)
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        """A server that still runs has to end in good order, unless the test has failed already."""
        if self.process.poll() is None:
            if error is None:
                code = self.stop()
                if code != 0:
                    raise AssertionError(f"the server ended with {code}: {''.join(self.log)}")
                return
            self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=240)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(240)
        self.sock.connect(self.path)


def ask(connection, path, method="GET", body=None, headers=None):
    connection.request(method, path, body, headers or {})
    response = connection.getresponse()
    data = response.read()
    if response.getheader("Content-Type") == "application/json" and data:
        data = json.loads(data)
    return response.status, dict(response.getheaders()), data


def tensor(name, datatype, values, shape=None):
    return {"name": name, "datatype": datatype, "shape": [len(values)] if shape is None else shape, "data": values}


def packed(datatype, values):
    return struct.pack(f"<{len(values)}{FORMATS[datatype]}", *values)


def binary_request(inputs, **members):
    """Body and headers of a request; an input is (name, datatype, shape, bytes)."""
    document = {"inputs": [{"name": name, "datatype": datatype, "shape": shape, "parameters": {"binary_data_size": len(data)}}
                           for name, datatype, shape, data in inputs], **members}
    head = json.dumps(document).encode()
    return head + b"".join(data for _, _, _, data in inputs), {"Inference-Header-Content-Length": str(len(head)),
                                                               "Content-Type": "application/octet-stream"}


def binary_response(headers, body):
    """(document, bytes of each binary output by name)"""
    size = int(headers["Inference-Header-Content-Length"])
    document = json.loads(body[:size])
    tensors, offset = {}, size
    for output in document["outputs"]:
        length = output.get("parameters", {}).get("binary_data_size")
        if length is not None:
            tensors[output["name"]] = body[offset:offset + length]
            offset += length
    assert offset == len(body), (offset, len(body))
    return document, tensors


def echo_module(datatype_text, name="echo"):
    """A program that returns its argument, as text: tensor<?xTYPE>."""
    return (f"vm.module @{name}\nvm.export @main\n"
            f'vm.attr @main "iree.abi.declaration" "sync func @main(%x: tensor<?x{datatype_text}>) -> (%y: tensor<?x{datatype_text}>)"\n'
            "vm.func @main(%r0: !hal.buffer_view) -> (!hal.buffer_view) {\n  vm.return %R0\n}\n")


LOOP_MODULE = """vm.module @loop
vm.export @forever
vm.func @forever(%i0: i32) -> (i32) {
  %i1 = vm.const.i32.zero
  vm.br ^bb1
^bb1:
  %i2 = vm.cmp.eq.i32 %i0, %i1
  vm.cond_br %i2, ^bb2, ^bb1
^bb2:
  vm.return %i0
}
"""

# Its initializer does not end.
LOOP_AT_START_MODULE = """vm.module @m
vm.export @__init
vm.func @__init() -> () {
  vm.br ^bb1
^bb1:
  vm.br ^bb1
^bb2:
  vm.return
}
vm.export @f
vm.func @f(%i0: i32) -> (i32) {
  vm.return %i0
}
"""

# An echo that takes seconds.
SLOW_ECHO_MODULE = """vm.module @slow
vm.export @main
vm.attr @main "iree.abi.declaration" "sync func @main(%x: tensor<?xf32>) -> (%y: tensor<?xf32>)"
vm.func @main(%r0: !hal.buffer_view) -> (!hal.buffer_view) {
  %i0 = vm.const.i32 500000000
  %i1 = vm.const.i32 1
  vm.br ^bb1
^bb1:
  %i0 = vm.sub.i32 %i0, %i1
  vm.cond_br %i0, ^bb1, ^bb2
^bb2:
  vm.return %R0
}
"""
