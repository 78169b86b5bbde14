"""npy files, version 1, without numpy."""
import ast
import struct


def read_npy(data):
    """(dtype, shape, bytes) of each array in a file of version 1."""
    while data:
        assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
        size = struct.unpack_from("<H", data, 8)[0]
        assert (10 + size) % 64 == 0, size
        header = ast.literal_eval(data[10:10 + size].decode())
        assert header["fortran_order"] is False
        count = 1
        for dimension in header["shape"]:
            count *= dimension
        length = count * int(header["descr"][2:])
        yield header["descr"], header["shape"], data[10 + size:10 + size + length]
        data = data[10 + size + length:]


def npy_array(descr, shape, data):
    """The file of one array."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape!r}, }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data
