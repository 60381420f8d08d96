"""Statements of the first kind: tensors, modules, optimizers, and what surrounds them."""

import copy
import io
import threading

import torch
from statement_kit import gradients, made, numbers, statement
from torch import nn
from torch.nn import functional as F


@statement
def arithmetic(dev):
    x, y = numbers(dev, 4, 8), numbers(dev, 4, 8, seed=1)
    return x + y, x - y, x * 2, x / y, x**2, -x, 3 - x, x.abs().sqrt(), x > y, x == x, x.clamp(-1, 1), x // 0.5, x % 3


@statement
def in_place(dev):
    x = numbers(dev, 4, 8)
    x.add_(1).mul_(2).div_(3).clamp_(min=-1).neg_()
    x[1:3] += 5
    x[:, 2] = 0
    return x


@statement
def views_share_memory(dev):
    x = numbers(dev, 4, 6)
    x.view(6, 4)[0] = 1
    x.t()[2] = 2
    x.select(0, 1).fill_(3)
    x.unsqueeze(0).squeeze(0)[3, 3] = 9
    x.unfold(1, 2, 2)[0, 0, 0] = 7
    x.expand(2, 4, 6)
    return x, x.t().is_contiguous(), x.view(-1)[3:].storage_offset(), x.permute(1, 0).stride()


@statement
def view_of_a_view_of_another_type(dev):
    x = torch.arange(8, dtype=torch.int32).to(dev)
    return x.view(torch.float32).view(torch.int32), x.view(torch.int16).shape


@statement
def detach_and_data_share_memory(dev):
    x = numbers(dev, 3).requires_grad_()
    x.detach().zero_()
    y = nn.Parameter(numbers(dev, 3))
    y.data = numbers(dev, 5)
    return x, y, y.shape


@statement
def out_arguments(dev):
    x, out = numbers(dev, 3, 3), torch.empty(0, device=dev)
    torch.add(x, x, out=out)
    there = torch.empty(3, 3, device=dev)
    torch.mm(x, x, out=there)
    return out, there


@statement
def resize_and_set(dev):
    x = torch.zeros(4, device=dev)
    x.resize_(2)
    y = torch.empty(0, device=dev).set_(x)
    z = torch.zeros(2, device=dev)
    z.resize_(3, 5)
    return x.shape, y, z.shape


@statement
def matrix_products(dev):
    x, y = numbers(dev, 2, 3, 4), numbers(dev, 2, 4, 5, seed=1)
    return (
        x @ y,
        torch.bmm(x, y),
        torch.einsum("bij,bjk->bik", x, y),
        x[0] @ y[0, :, 0],
        torch.addmm(numbers(dev, 3, 5), x[0], y[0]),
        torch.baddbmm(numbers(dev, 2, 3, 5), x, y),
        x[0, 0].dot(x[0, 1]),
    )


@statement
def reductions(dev):
    x = numbers(dev, 4, 6)
    return (
        x.sum(),
        x.mean(1),
        x.max(),
        x.max(1).values,
        x.argmax(1),
        x.std(),
        x.var(0),
        x.prod(),
        x.norm(),
        x.amax(0),
        x.cumsum(1),
        x.topk(2).values,
        x.sort(1).indices,
        x.any(),
        (x > 0).all(),
        x.logsumexp(1),
        x.median(),
    )


@statement
def indexing(dev):
    x = numbers(dev, 5, 6)
    rows = torch.tensor([0, 3, 4]).to(dev)
    x[rows] = 1.5
    x[rows, rows] = torch.tensor([1.0, 2.0, 3.0]).to(dev)
    x.index_add_(0, rows, torch.ones(3, 6).to(dev))
    return (
        x[rows],
        x[:, rows],
        x[rows][:, rows],
        x.index_select(1, rows),
        x.gather(1, rows.view(1, 3)),
        x[..., None, 1:3],
    )


@statement
def boolean_masks(dev):
    x = torch.tensor([[1.0, -2.0], [3.0, -4.0]]).to(dev)
    x[torch.tensor([True, False]).to(dev)] = 8
    return x.masked_fill(x < 0, 0), torch.where(x > 0, x, -x), torch.where(x > 0, x, 0.0)


@statement
def scatter(dev):
    x = torch.zeros(3, 5, device=dev)
    index = torch.tensor([[0, 1, 2], [2, 3, 4]]).to(dev)
    x.scatter_(1, index, 1.0).scatter_add_(1, index, torch.ones(2, 3).to(dev))
    return x, F.one_hot(index, 5)


@statement
def joining_and_splitting(dev):
    x = numbers(dev, 4, 6)
    return (
        torch.cat([x, x], 1),
        torch.stack([x, x]),
        *x.split(2),
        *x.chunk(3, 1),
        x.repeat(2, 1),
        x.flip(0),
        x.roll(1, 0),
        torch.nn.functional.pad(x, (1, 2)),
        x.tril(),
        x.triu(1),
        x.repeat_interleave(2, 0),
        x.tile(2),
    )


@statement
def factories(dev):
    return (
        torch.zeros(2, 3, device=dev),
        torch.ones(2, device=dev),
        torch.full((2,), 7, device=dev),
        torch.arange(2, 10, 3, device=dev),
        torch.eye(3, device=dev),
        torch.linspace(0, 1, 5, device=dev),
        torch.tensor([1, 2], device=dev),
        torch.zeros(3, device=dev).new_ones(2),
        torch.full_like(torch.zeros(2, device=dev), 3),
    )


@statement
def random_numbers_follow_the_seed(dev):
    torch.manual_seed(3)
    first = torch.randn(4, device=dev)
    torch.manual_seed(3)
    return first, torch.randn(4, device=dev), torch.rand(3, device=dev), torch.randint(0, 9, (5,), device=dev)


@statement
def dtypes(dev):
    x = numbers(dev, 4)
    return (
        x.half(),
        x.bfloat16(),
        x.double(),
        x.long(),
        x.bool(),
        x.to(torch.float8_e4m3fn).float(),
        x.bfloat16() + x,
        torch.result_type(x.bfloat16(), x).is_floating_point,
    )


@statement
def complex_numbers(dev):
    x = torch.complex(numbers(dev, 4), numbers(dev, 4, seed=1))
    return x.conj() * x, x.real, x.imag, torch.view_as_real(x), x.abs(), torch.fft.fft(numbers(dev, 8)), x.conj().imag


@statement
def copies_to_and_from_the_host(dev):
    x = numbers("cpu", 3, 4).to(dev, non_blocking=True)
    y = torch.empty(3, 4)
    y.copy_(x)
    z = torch.zeros(3, 4, device=dev)
    z.copy_(y)
    z.t().copy_(x.t())
    return y, z, x.cpu(), x.to("cpu", torch.float64), torch.empty(3, 4).pin_memory() is not None


@statement
def host_reads(dev):
    x = torch.tensor([[1, 2], [3, 4]]).to(dev)
    return x.tolist(), x[0, 1].item(), bool((x > 0).all()), int(x.sum()), x.numel(), len(x)


@statement
def activations(dev):
    x = numbers(dev, 4, 6)
    return (
        F.relu(x),
        F.gelu(x),
        F.silu(x),
        x.tanh(),
        x.sigmoid(),
        x.softmax(1),
        F.log_softmax(x, 1),
        F.elu(x),
        F.leaky_relu(x),
        F.softplus(x),
        F.hardtanh(x),
        F.mish(x),
        F.glu(x),
    )


@statement
def norms(dev):
    x = numbers(dev, 2, 6, 4)
    return (
        F.layer_norm(x, (4,)),
        F.rms_norm(x, (4,)),
        F.group_norm(x, 3),
        F.batch_norm(x, None, None, training=True),
        F.normalize(x, dim=-1),
        F.instance_norm(x),
    )


@statement
def losses(dev):
    x, target = numbers(dev, 4, 6), torch.tensor([0, 2, 5, 1]).to(dev)
    y = numbers(dev, 4, 6, seed=1)
    return (
        F.cross_entropy(x, target),
        F.nll_loss(x.log_softmax(1), target),
        F.mse_loss(x, y),
        F.l1_loss(x, y),
        F.binary_cross_entropy_with_logits(x, y.sigmoid()),
        F.smooth_l1_loss(x, y),
        F.kl_div(x.log_softmax(1), y.softmax(1)),
        F.cross_entropy(x, target, label_smoothing=0.1),
        F.cosine_embedding_loss(x, y, torch.ones(4, device=dev)),
    )


@statement
def linear_backward(dev):
    return gradients(made(dev, nn.Linear(6, 3)), numbers(dev, 2, 4, 6))


@statement
def convolution_backward(dev):
    return (
        *gradients(made(dev, nn.Conv2d(2, 4, 3, padding=1)), numbers(dev, 1, 2, 6, 6)),
        *gradients(made(dev, nn.Conv1d(2, 4, 3)), numbers(dev, 1, 2, 6)),
        *gradients(made(dev, nn.ConvTranspose2d(2, 4, 3)), numbers(dev, 1, 2, 6, 6)),
    )


@statement
def pooling(dev):
    x = numbers(dev, 1, 2, 6, 6)
    return (
        *gradients(nn.MaxPool2d(2), x.clone()),
        *gradients(nn.AvgPool2d(2), x.clone()),
        *gradients(nn.AdaptiveAvgPool2d(3), x.clone()),
        F.interpolate(x, scale_factor=2),
    )


@statement
def norm_backward(dev):
    return (
        *gradients(made(dev, nn.LayerNorm(6)), numbers(dev, 2, 6)),
        *gradients(made(dev, nn.RMSNorm(6)), numbers(dev, 2, 6)),
        *gradients(made(dev, nn.BatchNorm1d(6)), numbers(dev, 4, 6)),
        *gradients(made(dev, nn.GroupNorm(2, 6)), numbers(dev, 2, 6, 3)),
    )


@statement
def embedding_backward(dev):
    ids = torch.tensor([[1, 2, 0], [4, 1, 1]]).to(dev)
    return (
        *gradients(made(dev, nn.Embedding(5, 3)), ids),
        *gradients(made(dev, nn.EmbeddingBag(5, 3, mode="sum")), ids),
    )


@statement
def recurrent_layers(dev):
    x = numbers(dev, 2, 5, 3)

    def run(module):
        out, _ = made(dev, module)(x.clone().requires_grad_())
        out.sum().backward()
        return (out.detach(), *[parameter.grad for parameter in module.parameters()])

    return (
        *run(nn.LSTM(3, 4, batch_first=True)),
        *run(nn.GRU(3, 4, batch_first=True)),
        *run(nn.RNN(3, 4, batch_first=True)),
    )


def attend(dev, **settings):
    q, k, v = (numbers(dev, 2, 4, 6, 8, seed=place).requires_grad_() for place in range(3))
    out = F.scaled_dot_product_attention(q, k, v, **settings)
    out.sin().sum().backward()
    return out.detach(), q.grad, k.grad, v.grad


@statement
def attention(dev):
    mask = numbers(dev, 1, 1, 6, 6, seed=4)
    return (
        *attend(dev),
        *attend(dev, is_causal=True),
        *attend(dev, attn_mask=mask),
        *attend(dev, attn_mask=mask > 0),
        *attend(dev, scale=0.2),
    )


@statement
def grouped_query_attention(dev):
    q = numbers(dev, 1, 4, 6, 8).requires_grad_()
    k, v = (numbers(dev, 1, 2, 6, 8, seed=place).requires_grad_() for place in (1, 2))
    out = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    out.sum().backward()
    return out.detach(), q.grad, k.grad, v.grad


@statement
def transformer_encoder(dev):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    x = numbers(dev, 2, 5, 8)
    trained = gradients(made(dev, layer), x)
    layer.eval()
    with torch.no_grad():
        return (*trained, layer(x.detach()))


def optimize(dev, kind, **settings):
    torch.manual_seed(0)
    model = made(dev, nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
    optimizer = getattr(torch.optim, kind)(model.parameters(), **settings)
    for _ in range(3):
        model(numbers(dev, 6, 4)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return [parameter.detach() for parameter in model.parameters()]


@statement
def optimizers(dev):
    return [
        optimize(dev, "SGD", lr=0.1, momentum=0.9),
        optimize(dev, "AdamW", lr=0.01),
        optimize(dev, "Adam", lr=0.01, foreach=False),
        optimize(dev, "AdamW", lr=0.01, foreach=True),
        optimize(dev, "AdamW", lr=0.01, fused=True),
        optimize(dev, "Adafactor", lr=0.01),
        optimize(dev, "RMSprop", lr=0.01),
        optimize(dev, "Adagrad", lr=0.01),
        optimize(dev, "SGD", lr=0.1, fused=True),
    ]


@statement
def gradient_clipping_and_accumulation(dev):
    model = made(dev, nn.Linear(4, 2))
    for seed in range(3):
        model(numbers(dev, 5, 4, seed=seed)).sum().backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    nn.utils.clip_grad_value_(model.parameters(), 0.1)
    return (
        norm,
        model.weight.grad,
        torch.cat(
            [value.flatten() for value in torch.autograd.grad(model(numbers(dev, 5, 4)).sum(), model.parameters())]
        ),
    )


@statement
def checkpointing(dev):
    from torch.utils.checkpoint import checkpoint

    layer = made(dev, nn.Linear(4, 4))
    x = numbers(dev, 2, 4).requires_grad_()
    (checkpoint(layer, x, use_reentrant=False) + checkpoint(layer, x, use_reentrant=True)).sum().backward()
    return x.grad, layer.weight.grad


@statement
def hooks(dev):
    seen = []
    x = numbers(dev, 3).requires_grad_()
    x.register_hook(lambda grad: grad * 2)
    layer = made(dev, nn.Linear(3, 2))
    layer.register_forward_hook(lambda module, args, out: seen.append(tuple(out.shape)))
    layer.register_full_backward_hook(lambda module, grad_in, grad_out: seen.append(len(grad_out)))
    layer(x.unsqueeze(0)).sum().backward()
    return x.grad, str(seen)


@statement
def double_backward_and_transforms(dev):
    x = numbers(dev, 3).requires_grad_()
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    y = numbers(dev, 4, 3)
    return (
        second,
        torch.vmap(lambda row: row.sum() * 2)(y),
        torch.func.grad(lambda row: (row**2).sum())(y[0]),
        torch.func.jacrev(lambda row: row**2)(y[0]),
        torch.func.functional_call(made(dev, nn.Linear(3, 2)), {}, (y,)),
    )


@statement
def saving_and_loading(dev):
    x = numbers(dev, 3, 4)
    buffer = io.BytesIO()
    torch.save({"whole": x, "view": x[1:]}, buffer)
    buffer.seek(0)
    back = torch.load(buffer)
    buffer.seek(0)
    there = torch.load(buffer, map_location="cpu")
    back["whole"][1] = 0
    return back["whole"], back["view"], back["whole"].device.type == torch.device(dev).type, there["whole"]


@statement
def deep_copies(dev):
    model = made(dev, nn.Linear(3, 2))
    model(numbers(dev, 1, 3)).sum().backward()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    optimizer.step()
    twin = copy.deepcopy(model)
    state = copy.deepcopy(optimizer.state_dict())
    with torch.no_grad():
        model.weight.zero_()
    moved = state["state"][0]["exp_avg"]
    return twin.weight.detach(), moved, moved.device.type == torch.device(dev).type, copy.copy(twin.weight.data)


@statement
def moving_modules(dev):
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    made(dev, model)
    half = copy.deepcopy(model).bfloat16()
    back = copy.deepcopy(model).to("cpu")
    return next(half.parameters()).dtype, next(back.parameters()).device.type, list(model.state_dict())


@statement
def moving_a_module_keeps_its_parameters(dev):
    """Ties stay tied, and an optimizer made before the move trains what it holds."""
    tied = nn.Sequential(nn.Embedding(8, 4), nn.Linear(4, 8, bias=False))
    tied[1].weight = tied[0].weight
    before = tied[0].weight
    tied.to(dev)
    layer = nn.Linear(4, 2)
    with torch.no_grad():
        layer.weight.fill_(0.5), layer.bias.fill_(0.1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    layer.to(dev)
    layer(numbers(dev, 3, 4)).pow(2).mean().backward()
    optimizer.step()
    return tied[0].weight is tied[1].weight is before, len(list(tied.parameters())), layer.weight.detach()


@statement
def pickling(dev):
    import pickle

    x = numbers(dev, 3, 4)
    back = pickle.loads(pickle.dumps({"x": x, "view": x[1:]}))
    return back["x"], back["view"], back["x"].device.type == torch.device(dev).type


@statement
def padded_transformer_encoder(dev):
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
    mask = torch.tensor([[False, False, False, True], [False, False, False, False]]).to(dev)
    made(dev, encoder)
    with torch.no_grad():
        out = encoder(numbers(dev, 2, 4, 8), src_key_padding_mask=mask)
    return out[1], out[0, :3]


@statement
def autocast(dev):
    model = made(dev, nn.Linear(4, 4))
    with torch.autocast(torch.device(dev).type, dtype=torch.bfloat16):
        out = model(numbers(dev, 2, 4))
    out.float().sum().backward()
    return out.dtype, model.weight.grad.dtype


@statement
def inference_mode(dev):
    with torch.inference_mode():
        x = numbers(dev, 3, 4)
        y = x.view(4, 3) + 1
        y.add_(1)
    return y.is_inference(), y.clone()


@statement
def threads(dev):
    results = [None] * 4

    def work(place):
        x = numbers(dev, 8, 8, seed=place).requires_grad_()
        (x @ x).sum().backward()
        results[place] = x.grad

    workers = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return tuple(results)


@statement
def custom_autograd_function(dev):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 + ctx.saved_tensors[0] * 0

    x = numbers(dev, 3).requires_grad_()
    Double.apply(x).sum().backward()
    return x.grad


@statement
def mixed_with_the_host(dev):
    x = numbers(dev, 3)
    return x + torch.tensor(2.0), x[torch.tensor([0, 2])], x * torch.tensor(3)


@statement
def streams_events_and_generators(dev):
    if dev != "cpu":
        stream = torch.neuron.Stream()
        event = torch.neuron.Event(enable_timing=True)
        with torch.neuron.stream(stream):
            event.record()
        stream.wait_event(event)
        torch.neuron.current_stream().synchronize()
        torch.accelerator.synchronize()
    generator = torch.Generator(device=dev).manual_seed(1)
    return torch.rand(3, generator=generator, device=dev)


@statement
def linear_algebra(dev):
    x = numbers(dev, 3, 3)
    spd = x @ x.t() + torch.eye(3, device=dev)
    return (
        torch.linalg.cholesky(spd),
        torch.linalg.inv(spd),
        torch.linalg.det(spd),
        torch.linalg.solve(spd, x),
        torch.linalg.qr(spd).R.abs(),
    )


@statement
def mixed_devices_are_refused(dev):
    try:
        numbers(dev, 3) + (numbers("cpu", 3) if dev != "cpu" else numbers("meta", 3))
    except RuntimeError as error:
        return "device" in str(error)
    return False


@statement
def numpy_is_refused(dev):
    if dev == "cpu":
        return True
    try:
        numbers(dev, 3).numpy()
    except TypeError as error:
        return "cpu" in str(error).lower()
    return False


@statement
def shared_memory_is_refused(dev):
    if dev == "cpu":
        return True
    try:
        numbers(dev, 3).share_memory_()
    except (RuntimeError, NotImplementedError):
        return True
    return False
