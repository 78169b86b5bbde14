"""Tensors of PyTorch, through DLPack. Skipped where it is not installed (package python3-torch)."""

import gc

import pytest

import halyard

torch = pytest.importorskip("torch")


def test_results_share_their_memory(product):
    y = product([2.0] * 8, [3.0] * 8)
    tensor = torch.from_dlpack(y)
    assert tensor.dtype == torch.float32 and tensor.tolist() == [6.0] * 8
    tensor[0] = 7
    assert y.tolist()[0] == 7.0
    del y
    gc.collect()
    assert tensor.tolist() == [7.0] + [6.0] * 7


def test_arguments(product):
    assert product(torch.full((8,), 2.0), torch.full((8,), 3.0)).tolist() == [6.0] * 8
    assert product(torch.full((8, 2), 2.0)[:, 0], torch.full((8,), 3.0)).tolist() == [6.0] * 8
    y = torch.from_dlpack(product(torch.full((8,), 2.0), torch.full((8,), 3.0)))
    assert product(y, y).tolist() == [36.0] * 8
    with pytest.raises(halyard.InvalidArgumentError, match="float64, expected float32"):
        product(torch.ones(8, dtype=torch.float64), torch.ones(8))
    with pytest.raises(halyard.InvalidArgumentError, match=r"shape \(5,\), expected \(8,\)"):
        product(torch.ones(5), torch.ones(8))


def test_large_arguments_are_used_in_place(local_device):
    given = torch.arange(1 << 16, dtype=torch.int32)
    if given.data_ptr() % 64:
        pytest.skip("PyTorch has put the tensor where a device cannot use it in place")
    again = torch.from_dlpack(halyard.Tensor(given, device=halyard.device(local_device)))
    assert again.data_ptr() == given.data_ptr()


@pytest.mark.parametrize("dtype, name", [(torch.bfloat16, "bfloat16"), (torch.float16, "float16"), (torch.uint8, "uint8"),
                                         (torch.int64, "int64"), (torch.complex64, "complex64")])
def test_element_types(dtype, name):
    tensor = halyard.Tensor(torch.tensor([1, 2, 3]).to(dtype))
    assert tensor.dtype == name
    assert torch.from_dlpack(tensor).dtype == dtype and torch.from_dlpack(tensor)[2].item() == 3


def test_tensors_with_a_gradient_say_what_to_do(product):
    with pytest.raises(Exception, match="detach"):
        product(torch.ones(8, requires_grad=True), torch.ones(8))
    assert product(torch.ones(8, requires_grad=True).detach(), torch.ones(8)).tolist() == [1.0] * 8
