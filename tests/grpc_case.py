"""What the tests of vm-serve's gRPC service share: the stubs that protoc makes of its .proto, requests, and a client."""
import functools
import importlib
import os
import shutil
import subprocess
import sys
import tempfile

import vmrun
from serve_case import start
from serve_client import packed

PROTO = os.path.join(vmrun.SOURCE, "tools", "vm-serve", "inference.proto")
LIBRARY = os.path.join(vmrun.BUILD, "lib", "halyard", "vm-serve-grpc.so")
SYSTEM_PYTHON = "/usr/bin/python3"
CONTENTS = {"BOOL": "bool_contents", "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents", "INT64": "int64_contents",
            "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents", "UINT64": "uint64_contents",
            "FP32": "fp32_contents", "FP64": "fp64_contents"}


def reason_to_skip():
    """Why the service cannot be tested here; None if it can. Starts the test again if another Python can."""
    if not os.path.exists(LIBRARY):
        return "vm-serve-grpc.so is not in this build"
    if not shutil.which("protoc") or not shutil.which("grpc_python_plugin"):
        return "protobuf-compiler or protobuf-compiler-grpc is not installed"
    try:
        importlib.import_module("grpc")
        return None
    except ImportError:
        pass
    # The first python3 on the path may be another one than the system's, whose packages are Debian's.
    if os.path.exists(SYSTEM_PYTHON) and not os.path.samefile(sys.executable, SYSTEM_PYTHON) and subprocess.run([SYSTEM_PYTHON, "-c", "import grpc"], capture_output=True).returncode == 0:
        os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, os.path.join(os.path.dirname(__file__), "run.py"), *sys.argv])
    return "python3-grpcio is not installed"


@functools.cache
def stubs():
    """The modules that protoc makes: messages, and the client."""
    with tempfile.TemporaryDirectory(prefix="halyard-grpc-") as folder:
        subprocess.run(["protoc", f"--proto_path={os.path.dirname(PROTO)}", f"--python_out={folder}", f"--grpc_python_out={folder}",
                        f"--plugin=protoc-gen-grpc_python={shutil.which('grpc_python_plugin')}", PROTO], check=True)
        sys.path.insert(0, folder)
        try:
            return importlib.import_module("inference_pb2"), importlib.import_module("inference_pb2_grpc")
        finally:
            sys.path.remove(folder)


def start_grpc(*flags, **options):
    return start(*flags, "--grpc=127.0.0.1:0", **{"expect": 2, **options})


class Client:
    """A channel to a server, with the methods of its stub."""

    def __init__(self, server, options=()):
        import grpc
        # Each client has a connection of its own, and messages of any size.
        own = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self.channel = grpc.insecure_channel(server.grpc, options=[*own, *options])
        self.stub = stubs()[1].GRPCInferenceServiceStub(self.channel)

    def __getattr__(self, name):
        return getattr(self.stub, name)

    def bytes_of(self, method, message, **options):
        """The answer to a message that is given as bytes, as bytes."""
        return self.channel.unary_unary(f"/inference.GRPCInferenceService/{method}")(message, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()


def typed(name, datatype, values, shape=None):
    messages = stubs()[0]
    tensor = messages.ModelInferRequest.InferInputTensor(name=name, datatype=datatype, shape=[len(values)] if shape is None else shape)
    getattr(tensor.contents, CONTENTS[datatype]).extend(values)
    return tensor


def typed_request(model, *inputs, **members):
    return stubs()[0].ModelInferRequest(model_name=model, inputs=inputs, **members)


def raw_request(model, *inputs, **members):
    """An input is (name, datatype, shape, bytes)."""
    messages = stubs()[0]
    return messages.ModelInferRequest(model_name=model, raw_input_contents=[data for _, _, _, data in inputs], inputs=[
        messages.ModelInferRequest.InferInputTensor(name=name, datatype=datatype, shape=shape) for name, datatype, shape, _ in inputs], **members)


def raw_mul(values, other, model="mul", **members):
    return raw_request(model, ("input0", "FP32", [len(values)], packed("FP32", values)), ("input1", "FP32", [len(other)], packed("FP32", other)),
                       **members)


def typed_mul(values, other, model="mul", **members):
    return typed_request(model, typed("input0", "FP32", values), typed("input1", "FP32", other), **members)
