"""Parameters: arrays and files, and what a program gets of them."""

import json
import struct
import warnings

import pytest

import halyard

np = pytest.importorskip("numpy")

W = np.arange(4, dtype=np.float32) * 1.5 - 1


def program(key="w", count=4, at_init=False):
    """Loads `count` f32 of parameter `key` of scope "model"."""
    name = key.encode()
    text = f"""
vm.module @weights
vm.state 0, 1
vm.dependency @hal 7
vm.dependency @io_parameters 0
vm.type !hal.buffer
vm.type !hal.buffer_view
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.fence.create cconv "0rI_r"
vm.import @hal.fence.await cconv "0iICrD_i"
vm.import @hal.buffer_view.create cconv "0rIIiiCID_r"
vm.import @io_parameters.load cconv "0rIrrrIiirrr_r"
vm.rodata[0] = "model"
vm.rodata[1] = {struct.pack("<II", 0, len(name)).hex()}
vm.rodata[2] = {(name or bytes(1)).hex()}
vm.rodata[3] = {struct.pack("<QQQ", 0, 0, 4 * count).hex()}
vm.export @{"__init" if at_init else "main"}
vm.func @{"__init" if at_init else "main"}() -> ({"" if at_init else "!hal.buffer_view"}) {{
  %i0 = vm.const.i32.zero
  %r0 = vm.call @hal.devices.get(%i0)
  %r1 = vm.const.ref.zero
  %r2 = vm.const.ref.rodata 0
  %r3 = vm.const.ref.rodata 1
  %r4 = vm.const.ref.rodata 2
  %r5 = vm.const.ref.rodata 3
  %i2:3 = vm.const.i64 -1
  %i4 = vm.const.i32 50
  %i5 = vm.const.i32 150998019
  %i6:7 = vm.const.i64.zero
  %r6 = vm.call @hal.fence.create(%r0, %i6:7)
  %r7 = vm.call @io_parameters.load(%r0, %i2:3, %r1, %r6, %r2, %i2:3, %i4, %i5, %r3, %r4, %r5)
  %i8 = vm.const.i32 -1
  vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1](%i8, %i6:7, %r6) -> ^bb1(%i9)
^bb1:
"""
    if at_init:
        text += "  vm.return\n}\nvm.export @main\nvm.func @main() -> () {\n  vm.return\n}\n"
    else:
        text += f"""
  %i0 = vm.const.i32.zero
  %r8 = vm.list.get.ref %r7, %i0 : !hal.buffer
  %i10:11 = vm.const.i64 {4 * count}
  %i12:13 = vm.const.i64 {count}
  %i4 = vm.const.i32 {0x21000020}
  %i5 = vm.const.i32 1
  %r9 = vm.call.variadic @hal.buffer_view.create segments[65535, 65535, 65535, 65535, 65535, 1](%r8, %i6:7, %i10:11, %i4, %i5, %i12:13)
  vm.return %r9
}}
"""
    return halyard.assemble(text)


def load(parameters, **which):
    return halyard.load(program(**which), device="local-sync", parameters=parameters)


def value(array, **which):
    return load({"model": {which.get("key", "w"): array}}, **which).main().tolist()


def test_arrays_of_every_form():
    longer = np.repeat(W, 2)
    for same in (W, W[::-1][::-1], longer[::2], W.astype(">f4"), longer.astype(">f4")[::2], W.tolist(), tuple(W.tolist()),
                 halyard.Tensor(W), W.reshape(2, 2), np.asfortranarray(W.reshape(2, 2).T).T, memoryview(W)):
        assert value(same) == W.tolist(), same
    assert value(np.float32(2.5), count=1) == [2.5]
    assert value(2.5, count=1) == [2.5]


def test_other_types_and_sizes_are_refused():
    with pytest.raises(halyard.InvalidArgumentError, match=r"'w' has 32 bytes of type F64 \[4\].*only the first 16"):
        value(W.astype(np.float64))
    with pytest.raises(halyard.InvalidArgumentError, match=r"'w' has 32 bytes of type F32 \[8\]"):
        value(np.concatenate([W, W]))
    with pytest.raises(halyard.OutOfRangeError, match="8 bytes of parameter .w. of type F16"):
        value(W.astype(np.float16))
    with pytest.raises(halyard.InvalidArgumentError, match="'w' has 32 bytes"):
        load({"model": {"w": np.arange(4)}}, at_init=True)


def test_what_is_no_parameter():
    for wrong in (np.array([None] * 4), W.astype(str), W.astype("datetime64[s]"), np.zeros(4, [("a", "f4")]),
                  W.astype(np.longdouble), np.ma.array(W, mask=[True] * 4), b"abcd", "abcd", None, {1}, object()):
        with pytest.raises(TypeError, match="parameter 'w'"):
            value(wrong)
    for wrong in (["a"], [1e300], [[1.0], [2.0, 3.0]], [2**64]):
        with pytest.raises((TypeError, ValueError), match="parameter 'w'"):
            value(wrong)
    with pytest.raises(TypeError, match="must be a str, not 7"):
        load({"model": {7: W}})
    with pytest.raises(TypeError, match="scope of parameters must be a str"):
        load({7: {"w": W}})
    with pytest.raises(TypeError, match="scope 'model' must be paths or a dict"):
        load({"model": [7]})
    with pytest.raises(ValueError, match="__metadata__"):
        load({"model": {"__metadata__": W}})
    with pytest.raises(ValueError, match="not valid Unicode"):
        load({"model": {"\ud800": W}})


@pytest.mark.parametrize("key", ["w", "größe", 'a"b', "a\\b", "a/b", "重み", "😀", "line\nbreak", "\x01", "x" * 300])
def test_writer_and_reader_agree_on_names(key):
    assert value(W, key=key) == W.tolist()


@pytest.mark.parametrize("ascii_only", [True, False])
def test_names_in_files(tmp_path, ascii_only):
    for key in ("w", "größe", 'a"b', "重み", "😀"):
        file = write(tmp_path / "k.safetensors", {key: ("F32", [4], W)}, ensure_ascii=ascii_only)
        assert load({"model": file}, key=key).main().tolist() == W.tolist()


def write(path, tensors, **how):
    header, data = {}, b""
    for name, (dtype, shape, array) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header, **how).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


# ---- Saving: what is written is read again

FORMATS = ["safetensors", "irpa"]


@pytest.mark.parametrize("ending", FORMATS)
def test_saved_parameters(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    longer = np.repeat(W, 2)
    odd = {"one": np.int8([7]), "ä/b\"\n": np.zeros((3, 0)), "scalar": 2.5, "b": [True, False, True], "names" * 99: np.ones((5, 7), np.float16)}
    for same in (W, longer[::2], W.astype(">f4"), W.tolist(), halyard.Tensor(W), W.reshape(2, 2)):
        halyard.save_parameters(path, {**odd, "w": same, "last": W + 1})
        for key, expected in (("w", W), ("last", W + 1)):
            assert load({"model": path}, key=key).main().tolist() == expected.tolist()
        assert load({"model": path}, key="scalar", count=1).main().tolist() == [2.5]
    halyard.save_parameters(str(path), {})
    with pytest.raises(halyard.NotFoundError, match="no parameter 'w'"):
        load({"model": path}).main()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", FORMATS)
def test_saved_parameters_of_every_type(tmp_path, ending):
    for name, (dtype, bits) in halyard.element_types.items():
        raw = np.arange(16, dtype=np.uint8) % (2 if dtype == "bool" else 60)
        tensor = halyard.Tensor.frombytes(raw.tobytes(), name, (128 // bits,))
        halyard.save_parameters(tmp_path / f"a.{ending}", {"w": tensor})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the program expects f32
            assert load({"model": tmp_path / f"a.{ending}"}).main().tobytes() == raw.tobytes(), name


def test_the_text_of_safetensors(tmp_path):
    halyard.save_parameters(tmp_path / "A.SafeTensors", {"w": W.reshape(2, 2), "x": halyard.Tensor([1, 2])})
    data = (tmp_path / "A.SafeTensors").read_bytes()
    size, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    assert header == {"w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
                      "x": {"dtype": "I64", "shape": [2], "data_offsets": [64, 80]}}
    assert (8 + size) % 64 == 0 and data[8 + size:8 + size + 16] == W.tobytes() and len(data) == 8 + size + 80


def test_the_layout_of_irpa(tmp_path):
    """Offsets of the specification, read here without the library."""
    halyard.save_parameters(tmp_path / "a.irpa", {"a": W, "b/c": np.int16([1, 2, 3])})
    data = (tmp_path / "a.irpa").read_bytes()
    assert len(data) % 4096 == 0 and data[:4] == b"IRPA"
    size, count, entries, entries_size, names, names_size, storage, storage_size = struct.unpack_from("<8x Q 16x 7Q", data)
    assert (size, count, entries, names, names_size, storage_size) == (88, 2, 96, entries + entries_size, 4, 70)
    assert storage % 64 == 0 and data[names:names + 4] == b"ab/c"
    for at, name, expected in ((96, b"a", W), (176, b"b/c", np.int16([1, 2, 3]))):
        record, kind, name_at, name_size, alignment, offset, length = struct.unpack_from("<Q I 8x QQ 16x Q QQ", data, at)
        assert (record, kind, alignment, length) == (76, 2, 64, expected.nbytes)
        assert data[names + name_at:names + name_at + name_size] == name
        assert data[storage + offset:storage + offset + length] == expected.tobytes() and offset % 64 == 0


@pytest.mark.parametrize("ending", FORMATS)
def test_a_failure_to_save_leaves_the_old_file(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    halyard.save_parameters(path, {"w": W})
    for wrong, error in (({"w": W, 7: W}, TypeError), ({"w": object()}, TypeError), ({"w": [[1.0], [1.0, 2.0]]}, ValueError),
                         ({"\ud800": W}, ValueError)):
        with pytest.raises(error, match="parameter"):
            halyard.save_parameters(path, wrong)
    with pytest.raises(FileNotFoundError):
        halyard.save_parameters(tmp_path / "none" / f"a.{ending}", {"w": W})
    assert load({"model": path}).main().tolist() == W.tolist() and len(list(tmp_path.iterdir())) == 1


def test_names_of_files_to_save(tmp_path):
    for wrong in ("a", "a.gguf", "a.irpa.old"):
        with pytest.raises(ValueError, match=r"must end in .safetensors or .irpa"):
            halyard.save_parameters(tmp_path / wrong, {"w": W})
    with pytest.raises(ValueError, match="__metadata__"):
        halyard.save_parameters(tmp_path / "a.safetensors", {"__metadata__": W})
    halyard.save_parameters(tmp_path / "a.irpa", {"__metadata__": W})
    assert load({"model": tmp_path / "a.irpa"}, key="__metadata__").main().tolist() == W.tolist()


def test_a_file_of_another_type_gives_one_warning(tmp_path):
    file = write(tmp_path / "d.safetensors", {"w": ("F64", [4], W.astype(np.float64))})
    model = load({"model": file})
    with pytest.warns(RuntimeWarning, match=r"'w' has 32 bytes of type F64 \[4\].*only the first 16") as caught:
        model.main()
    assert len(caught) == 1 and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.main()  # told once
    with pytest.warns(RuntimeWarning, match="'w' has 32 bytes") as caught:
        load({"model": file}, at_init=True)
    assert caught[0].filename == __file__
    for at_init in (True, False):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeWarning, match="'w' has 32 bytes"):
                load({"model": file}, at_init=at_init).main()


def test_the_warning_of_an_awaited_call(tmp_path):
    import asyncio

    model = load({"model": write(tmp_path / "d.safetensors", {"w": ("F64", [4], W.astype(np.float64))})})
    with pytest.warns(RuntimeWarning, match="'w' has 32 bytes"):
        asyncio.run(model.main.call_async())


def test_messages_are_in_words_of_python():
    for parameters in (None, {"modle": {"w": W}}):
        with pytest.raises(halyard.NotFoundError, match="scope 'model'.*`parameters`") as caught:
            load(parameters).main()
        assert "--" not in str(caught.value)


def test_shards(tmp_path):
    write(tmp_path / "one.safetensors", {"v": ("F32", [4], -W)})
    write(tmp_path / "two.safetensors", {"w": ("F32", [4], W)})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"v": "one.safetensors", "w": "two.safetensors"}}))
    assert load({"model": index}).main().tolist() == W.tolist()
    assert load({"model": str(index)}, key="v").main().tolist() == (-W).tolist()
