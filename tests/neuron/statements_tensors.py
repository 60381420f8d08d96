"""Statements about tensors: views, in-place operators, `out=`, dtypes, indices, copies, storages."""

import copy

import torch
from statement_kit import numbers, refused, statement
from torch.nn import functional as F


@statement
def chained_views_write_through(dev):
    x = numbers(dev, 2, 3, 4)
    x.transpose(1, 2).reshape(-1)
    x.movedim(0, 2)[0, 0, 0] = 5
    x.swapaxes(0, 1).narrow(0, 1, 2).mul_(2)
    x.flatten(1).diagonal().fill_(7)
    return x


@statement
def views_know_their_base(dev):
    x = numbers(dev, 4, 6)
    y = x[1:].t()
    return y._base is x, y.data_ptr() == x.data_ptr() + 6 * 4, y._is_view(), x.view_as(x)._base is x


@statement
def storages_tell_what_is_shared(dev):
    x = numbers(dev, 4, 6)
    same = x.untyped_storage().data_ptr() == x[2:].untyped_storage().data_ptr()
    other = x.untyped_storage().data_ptr() == x.clone().untyped_storage().data_ptr()
    return same, other, x.untyped_storage().nbytes(), x.storage_offset(), x[2:].storage_offset()


@statement
def addresses_are_unique(dev):
    held = [torch.empty(size, device=dev) for size in (1, 5, 5000, 3, 1)]
    return len({each.data_ptr() for each in held})


@statement
def unfold_and_strides(dev):
    x = torch.arange(12.0).to(dev)
    return x.unfold(0, 4, 2), x.as_strided((3, 2), (2, 3), 1), x[::3], x[1::2].stride(), x.view(3, 4)[:, ::2]


@statement
def splitting_gives_views(dev):
    x = numbers(dev, 6, 4)
    for part in (*x.split([1, 2, 3]), *x.tensor_split(2, 1), *x.unbind(0)[:2], *x.hsplit(2)):
        part.add_(1)
    return x


@statement
def in_place_operators_give_the_same_object(dev):
    x = numbers(dev, 3, 3)
    return x.add_(1) is x, x.t_() is x, x.squeeze_() is x, x.unsqueeze_(0).shape, x.zero_() is x, x.copy_(x) is x


@statement
def in_place_counts_versions(dev):
    x = numbers(dev, 3)
    before = x._version
    x.add_(1)
    x[0] = 2
    return x._version - before


@statement
def in_place_on_a_leaf_is_refused(dev):
    x = numbers(dev, 3).requires_grad_()
    return refused(lambda: x.add_(1), "leaf Variable")


@statement
def changed_values_break_the_backward(dev):
    x = numbers(dev, 3).requires_grad_()
    y = x.exp()
    y.add_(1)
    return refused(lambda: y.sum().backward(), "modified by an inplace operation")


@statement
def in_place_keeps_the_dtype(dev):
    x = torch.ones(3, dtype=torch.int32).to(dev)
    return refused(lambda: x.add_(0.5), "can't be cast"), x.add_(2), x.mul_(True)


@statement
def in_place_math(dev):
    x = numbers(dev, 4, 4).abs() + 0.1
    x.sqrt_().log_().exp_().reciprocal_().sigmoid_().tanh_().pow_(2).round_(decimals=2).clamp_min_(0.1)
    return x, x.lerp_(torch.ones_like(x), 0.5), x.addcmul_(x, x, value=0.1), x.sub_(1, alpha=2), x.floor_()


@statement
def masked_writes(dev):
    x = numbers(dev, 4, 4)
    mask = torch.eye(4, dtype=torch.bool).to(dev)
    x.masked_fill_(mask, -1)
    x[mask] = 3.0
    x.masked_scatter_(mask, torch.arange(4.0).to(dev))
    return x, torch.where(mask, x, torch.zeros((), device=dev))


@statement
def index_writes(dev):
    x = numbers(dev, 4, 4)
    rows = torch.tensor([0, 2]).to(dev)
    x.index_fill_(0, rows, 1.5)
    x.index_copy_(1, rows, torch.ones(4, 2).to(dev))
    x.index_put_((rows, rows), torch.tensor([1.0, 2.0]).to(dev), accumulate=True)
    x.scatter_reduce_(0, rows.view(1, 2), torch.full((1, 2), 9.0).to(dev), "amax")
    x.put_(rows, torch.zeros(2).to(dev))
    return x, x.take(rows), x.take_along_dim(rows.view(1, 2), 1)


@statement
def indices_of_every_kind(dev):
    x = numbers(dev, 3, 4, 5)
    i = torch.tensor([[0, 1], [2, 0]]).to(dev)
    return x[i], x[:, i], x[i, i], x[..., 0], x[None, 1, :, ::2], x[[0, 2]], x[1:2, [0, 3]], x[-1, -1, -1], x[i, :, i]


@statement
def an_index_out_of_range_is_refused(dev):
    return refused(lambda: numbers(dev, 3)[5], "out of bounds"), refused(lambda: numbers(dev, 3).select(1, 0), "range")


@statement
def out_arguments_of_other_kinds(dev):
    x = numbers(dev, 3, 4)
    values, indices = torch.empty(0, device=dev), torch.empty(0, dtype=torch.long, device=dev)
    torch.max(x, 1, out=(values, indices))
    view = torch.zeros(4, 4, device=dev)
    torch.neg(x, out=view[:3])
    return values, indices, view, torch.cat([x, x], out=torch.empty(0, device=dev)), torch.exp(x, out=x) is x


@statement
def out_of_another_dtype_is_refused(dev):
    x = numbers(dev, 3)
    return refused(lambda: torch.add(x, x, out=torch.empty(3, dtype=torch.long, device=dev)), "can't be cast")


@statement
def broadcasting(dev):
    x, y = numbers(dev, 3, 1, 4), numbers(dev, 2, 1)
    return (
        x + y,
        x * y,
        torch.maximum(x, y),
        *torch.broadcast_tensors(x, y),
        x.expand(3, 2, 4).sum(1),
        x.expand_as(x + y),
    )


@statement
def shapes_that_do_not_fit_are_refused(dev):
    x = numbers(dev, 3, 4)
    return (
        refused(lambda: x + numbers(dev, 5), "must match"),
        refused(lambda: x @ x, "cannot be multiplied"),
        refused(lambda: x.view(5), "invalid"),
        refused(lambda: torch.cat([x, numbers(dev, 2, 5)]), "match"),
    )


@statement
def empty_tensors(dev):
    x = torch.empty(0, 3, device=dev)
    return (
        x.sum(),
        x + 1,
        torch.cat([x, numbers(dev, 2, 3)]),
        x.t(),
        x.mean(1),
        x.numel(),
        x.all(),
        x.prod(0),
        x.reshape(3, 0),
    )


@statement
def scalars_without_dimensions(dev):
    x = torch.tensor(3.5).to(dev)
    return (
        x + 1,
        x.item(),
        float(x),
        int(x),
        x.shape,
        x.view(1),
        torch.stack([x, x]),
        x.expand(2),
        x == 3.5,
    )


@statement
def numbers_in_the_place_of_tensors(dev):
    x = torch.arange(1.0, 5.0).to(dev)
    return (
        1 / x,
        2**x,
        3 % x,
        7 // x,
        2 - x,
        torch.where(x > 2, 1, x),
        torch.remainder(x, 2),
        torch.fmod(x, 2),
        x.float_power(2),
    )


@statement
def promotion_of_dtypes(dev):
    i, f, h = (torch.ones(2, dtype=kind).to(dev) for kind in (torch.int64, torch.float32, torch.bfloat16))
    return (
        i + f,
        h + f,
        i * 1.5,
        h * 2,
        i / 2,
        i + True,
        (i > 0) + i,
        f + torch.tensor(2.0, dtype=torch.float64),
        h + i,
        i // 2,
    )


@statement
def bits_and_whole_numbers(dev):
    x = torch.tensor([1, 6, -7, 12]).to(dev)
    return (
        x & 5,
        x | 8,
        x ^ 3,
        ~x,
        x << 2,
        x >> 1,
        x.bitwise_not(),
        x.int().bitwise_and(3),
        x % 4,
        x.abs(),
        x.sign(),
        x.gcd(x),
    )


@statement
def logic(dev):
    a, b = torch.tensor([True, False, True]).to(dev), torch.tensor([True, True, False]).to(dev)
    return (
        a & b,
        a | b,
        a ^ b,
        ~a,
        a.logical_and(b),
        a.logical_xor(b),
        a.any(),
        b.all(),
        a.sum(),
        a.int(),
        a.float().mean(),
    )


@statement
def sixty_four_bits(dev):
    x = torch.tensor([2**40, -(2**35), 3]).to(dev)
    y = torch.tensor([1e-300, 1.0 + 1e-12], dtype=torch.float64).to(dev)
    return x + 1, x * 2, x // 3, x.sum(), y, y * 1, y.sum(), x.double(), y.float()


@statement
def float8(dev):
    x = numbers(dev, 4, 4)
    y = x.to(torch.float8_e5m2)
    return (
        y.float(),
        y.view(torch.uint8).shape,
        y[1:].float(),
        y.t().float(),
        torch.zeros(3, dtype=torch.float8_e4m3fn, device=dev).float(),
    )


@statement
def half_precision(dev):
    x, y = numbers(dev, 4, 4).half(), numbers(dev, 4, 4).bfloat16()
    return (
        x + x,
        (y @ y).float().shape,
        y.sum(),
        x.softmax(1).dtype,
        y.exp().dtype,
        y.layer_norm if False else F.layer_norm(y, (4,)).dtype,
    )


@statement
def complex_views(dev):
    x = torch.view_as_complex(numbers(dev, 3, 2))
    y = x.conj()
    y.imag.mul_(2)
    return (
        x,
        y,
        y.is_conj(),
        y.resolve_conj(),
        x.real,
        x.imag.is_contiguous(),
        y @ x,
        x.angle(),
        torch.polar(x.abs(), x.angle()),
    )


@statement
def negative_bits(dev):
    x = torch.complex(numbers(dev, 3), numbers(dev, 3, seed=1)).conj().imag
    return x.is_neg(), x + 1, x.resolve_neg(), x.clone(), x.sum()


@statement
def fourier(dev):
    x = numbers(dev, 8)
    return (
        torch.fft.rfft(x),
        torch.fft.irfft(torch.fft.rfft(x)),
        torch.fft.fft2(numbers(dev, 4, 4)),
        torch.fft.fftshift(x),
    )


@statement
def sorting(dev):
    x = numbers(dev, 4, 5)
    return *x.sort(descending=True), x.argsort(1), *x.topk(3, largest=False), *x.kthvalue(2), *x.mode(), x.msort()


@statement
def counting_and_histograms(dev):
    x = torch.tensor([1, 3, 1, 0, 3]).to(dev)
    return (
        x.float().histc(4, 0, 4),
        (x == 1).sum(),
        x.cumsum(0),
        x.float().cumprod(0),
        x.diff(),
        x.float().cummax(0).values,
        x.count_nonzero(),
    )


@statement
def windows_and_grids(dev):
    x, y = torch.meshgrid(torch.arange(3).to(dev), torch.arange(2).to(dev), indexing="ij")
    return x, y, torch.cartesian_prod(x[:, 0], y[0]), torch.tril_indices(3, 3, device=dev), torch.combinations(x[:, 0])


@statement
def sums_over_several_dimensions(dev):
    x = numbers(dev, 2, 3, 4)
    return (
        x.sum((0, 2)),
        x.mean((0, 1), keepdim=True),
        x.amax((1, 2)),
        x.std((0, 2)),
        x.var(1, unbiased=False),
        x.norm(dim=(0, 1)),
        x.nansum(1),
    )


@statement
def special_values(dev):
    x = torch.tensor([float("inf"), float("nan"), -float("inf"), 0.0]).to(dev)
    return (
        x.isnan(),
        x.isinf(),
        x.isfinite(),
        x.nan_to_num(),
        x == x,
        torch.isclose(x, x, equal_nan=True),
        x.sign(),
        x.signbit(),
    )


@statement
def elementwise_functions(dev):
    x = numbers(dev, 5).abs() * 0.8 + 0.05
    return (
        x.erf(),
        x.erfinv(),
        x.log1p(),
        x.expm1(),
        x.sin(),
        x.cos(),
        x.tan(),
        x.atan2(x),
        x.lgamma(),
        x.rsqrt(),
        x.logit(),
        x.frac(),
        x.trunc(),
    )


@statement
def comparing_tensors(dev):
    x = numbers(dev, 3)
    return (
        torch.equal(x, x.clone()),
        torch.allclose(x, x + 1e-9),
        x.eq(x),
        x.ne(0),
        torch.isclose(x, x),
        x.is_same_size(x),
        x.minimum(x),
        x.gt(0),
    )


@statement
def new_tensors_from_old(dev):
    x = numbers(dev, 2, 3)
    return [
        each.device.type == torch.device(dev).type
        for each in (
            x.new_zeros(2),
            x.new_full((2,), 1),
            x.new_tensor([1]),
            x.new_empty(1),
            torch.rand_like(x),
            torch.empty_like(x),
        )
    ]


@statement
def like_factories_keep_strides(dev):
    x = numbers(dev, 3, 4).t()
    return (
        torch.empty_like(x).stride(),
        torch.zeros_like(x).stride(),
        x.clone().stride(),
        torch.ones_like(x, dtype=torch.int32),
        (x + 1).stride(),
    )


@statement
def default_device_and_dtype(dev):
    before = torch.get_default_dtype()
    with torch.device(dev):
        x, y = torch.zeros(2), torch.arange(3)
        torch.set_default_dtype(torch.bfloat16)
        z = torch.ones(2)
        torch.set_default_dtype(before)
    return x, y, z, x.device.type == torch.device(dev).type


@statement
def lists_and_arrays_become_tensors(dev):
    import numpy

    return (
        torch.tensor([[1, 2], [3, 4]], device=dev),
        torch.as_tensor(numpy.ones(3), device=dev),
        torch.from_numpy(numpy.arange(3)).to(dev),
    )


@statement
def printing(dev):
    x = torch.arange(3).to(dev)
    shown = repr(x).replace(", device='neuron:0'", "")
    return shown if "meta" not in str(x.device) else "", str(torch.empty(0, device=dev)).startswith("tensor([]")


@statement
def moving_between_devices(dev):
    x = numbers("cpu", 3)
    y = x.to(dev)
    return (
        y.to(dev) is y,
        y.to(dev, copy=True) is y,
        y.to(torch.float32) is y,
        y.cpu().device.type,
        y.to(x.device),
        y.type_as(y) is y,
        y.to(y),
    )


@statement
def copies_that_cast_and_broadcast(dev):
    x = torch.zeros(2, 3, device=dev)
    x.copy_(torch.arange(3))
    x[0].copy_(torch.tensor([1, 2, 3], dtype=torch.int16).to(dev))
    y = torch.zeros(3, dtype=torch.long)
    y.copy_(x[0])
    return x, y, x.t().contiguous(), x.t().contiguous().stride()


@statement
def pinned_memory(dev):
    x = torch.zeros(3)
    y = x.pin_memory() if dev != "cpu" else x
    return y.to(dev, non_blocking=True), (dev == "cpu") or (y.is_pinned() and not y.to(dev).is_pinned())


@statement
def storage_resize(dev):
    x = numbers(dev, 4)
    copy_of = x.clone()
    x.untyped_storage().resize_(0)
    size = x.untyped_storage().size()
    x.untyped_storage().resize_(16)
    x.copy_(copy_of)
    return size, x, x.untyped_storage().nbytes()


@statement
def storages_are_copied(dev):
    x = numbers(dev, 3)
    y = copy.deepcopy({"a": x, "b": x, "view": x[1:]})
    y["a"][1] = 9
    return y["b"], y["view"], x, y["a"] is y["b"], copy.copy(x).data_ptr() == x.data_ptr()


@statement
def data_and_set(dev):
    x, y = numbers(dev, 3), numbers(dev, 4, seed=1)
    x.data = y
    z = torch.empty(0, device=dev)
    z.set_(y.untyped_storage(), 1, (2,), (1,))
    z.zero_()
    return x, y, z.storage_offset(), x.data_ptr() == y.data_ptr()


@statement
def resizing(dev):
    x = torch.ones(2, 2, device=dev)
    x.resize_(4)
    y = torch.ones(3, device=dev).resize_as_(torch.empty(1, 3, device=dev))
    return x, y, torch.zeros(2, device=dev).resize_(0).numel()


@statement
def dlpack_and_numpy_are_refused(dev):
    x = numbers(dev, 3)
    if dev == "cpu":
        return [True] * 4
    return [
        refused(x.numpy, "cpu"),
        refused(lambda: x.__array__(), "cpu"),
        refused(lambda: torch.utils.dlpack.to_dlpack(x), "neuron"),
        refused(lambda: __import__("numpy").from_dlpack(x), ""),
    ]


@statement
def sparse_is_refused(dev):
    if dev == "cpu":
        return [True] * 4
    x = torch.eye(3, device=dev)
    there = torch.tensor([[0, 1], [1, 0]]).to(dev)
    return [
        refused(x.to_sparse, "neuron", "sparse"),
        refused(lambda: x.to_sparse_csr(), "neuron", "sparse"),
        refused(lambda: torch.sparse_coo_tensor(there, torch.ones(2).to(dev), (2, 2)), "neuron", "sparse"),
        refused(lambda: torch.eye(3).to_sparse().to(dev), "neuron", "sparse"),
    ]


@statement
def other_memory_formats_are_refused(dev):
    if dev == "cpu":
        return [True] * 4
    x = numbers(dev, 1, 2, 3, 3)
    return [
        refused(lambda: x.to(memory_format=torch.channels_last), "memory format"),
        refused(lambda: x.contiguous(memory_format=torch.channels_last), "memory format"),
        refused(lambda: torch.empty(1, 2, 3, 3, device=dev, memory_format=torch.channels_last), "memory format"),
        refused(lambda: torch.nn.Conv2d(2, 2, 3).to(dev, memory_format=torch.channels_last), "memory format"),
    ]


@statement
def quantized_tensors_are_refused(dev):
    return dev == "cpu" or refused(lambda: torch.quantize_per_tensor(numbers(dev, 3), 0.1, 0, torch.qint8), "neuron")


@statement
def another_device_index_is_refused(dev):
    return dev == "cpu" or refused(lambda: torch.neuron.set_device(7), "invalid device ordinal")


@statement
def tensors_of_two_devices_are_refused(dev):
    x, y = numbers(dev, 3, 3), numbers("cpu", 3, 3)
    if dev == "cpu":
        return [True] * 5
    return [
        refused(lambda: x + y, "device"),
        refused(lambda: y @ x, "device"),
        refused(lambda: torch.cat([x, y]), "device"),
        refused(lambda: F.linear(x, y), "device"),
        refused(lambda: torch.where(x > 0, x, y), "device"),
    ]
