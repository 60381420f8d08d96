"""Statements about autograd, modules, optimizers, schedules, compiling, and what torch has around them."""

import copy
import io
import pickle
import threading
import warnings

import torch
from statement_kit import compiled, gradients, made, numbers, refused, statement
from torch import nn
from torch.nn import functional as F


@statement
def gradients_of_views_and_indices(dev):
    x = numbers(dev, 4, 4).requires_grad_()
    (x[1:].t().reshape(-1).sin().sum() + x[[0, 0]].sum() + x.diagonal().prod()).backward()
    return x.grad


@statement
def gradients_accumulate_and_clear(dev):
    x = numbers(dev, 3).requires_grad_()
    for _ in range(2):
        (x * 2).sum().backward()
    first = x.grad.clone()
    x.grad.zero_()
    x.sum().backward()
    return first, x.grad, x.grad.device.type == torch.device(dev).type


@statement
def retained_graphs_and_inputs(dev):
    x, y = numbers(dev, 3).requires_grad_(), numbers(dev, 3).requires_grad_()
    z = x * y
    z.retain_grad()
    z.sum().backward(retain_graph=True, inputs=[x])
    only = y.grad is None
    z.sum().backward()
    return only, x.grad, y.grad, z.grad


@statement
def a_second_backward_is_refused(dev):
    x = numbers(dev, 3).requires_grad_()
    y = x.exp().sum()
    y.backward()
    return refused(y.backward, "second time")


@statement
def no_grad_and_enable_grad(dev):
    x = numbers(dev, 3).requires_grad_()
    with torch.no_grad():
        y = x * 2
        with torch.enable_grad():
            z = x * 3
    with torch.set_grad_enabled(False):
        w = x + 1
    return y.requires_grad, z.requires_grad, w.requires_grad, x.detach().requires_grad, (x * 2).grad_fn.name()


@statement
def inference_tensors_stay_out_of_autograd(dev):
    with torch.inference_mode():
        x = numbers(dev, 3) * 2
    weight = numbers(dev, 3).requires_grad_()
    return x.is_inference(), refused(lambda: (x * weight).sum().backward(), "nference"), x.clone().is_inference()


@statement
def hessians(dev):
    x = numbers(dev, 3)
    return torch.func.hessian(lambda v: (v**3).sum())(x), torch.autograd.functional.jacobian(lambda v: v.sin(), x)


@statement
def forward_mode(dev):
    x, tangent = numbers(dev, 3), numbers(dev, 3, seed=1)
    return *torch.func.jvp(lambda v: v.sin() * v, (x,), (tangent,)), torch.func.vjp(lambda v: v**2, x)[1](tangent)[0]


@statement
def vmap_over_models(dev):
    layers = [made(dev, nn.Linear(3, 2)) for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(layers)

    def call(params, state, x):
        return torch.func.functional_call(layers[0], (params, state), (x,))

    out = torch.vmap(call, in_dims=(0, 0, None))(parameters, buffers, numbers(dev, 4, 3))
    return out.detach(), torch.vmap(torch.dot)(numbers(dev, 4, 3), numbers(dev, 4, 3))


@statement
def per_sample_gradients(dev):
    layer = made(dev, nn.Linear(3, 1))
    params = {name: value.detach() for name, value in layer.named_parameters()}

    def loss(params, x):
        return torch.func.functional_call(layer, params, (x,)).pow(2).sum()

    return torch.vmap(torch.func.grad(loss), in_dims=(None, 0))(params, numbers(dev, 4, 3))["weight"]


@statement
def tensor_hooks_see_and_change(dev):
    x = numbers(dev, 3).requires_grad_()
    seen = []
    y = x * 2
    y.register_hook(lambda grad: grad + 1)
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.sum().cpu()))
    handle = x.register_hook(lambda grad: grad * 10)
    y.sum().backward()
    handle.remove()
    return x.grad, seen[0]


@statement
def saved_tensor_hooks(dev):
    x = numbers(dev, 3).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.cpu(), lambda t: t.to(dev)):
        y = x.exp() * x
    y.sum().backward()
    return x.grad


@statement
def activations_saved_on_the_host(dev):
    x = numbers(dev, 3).requires_grad_()
    with torch.autograd.graph.save_on_cpu():
        y = x.exp() * x
    y.sum().backward()
    return x.grad


@statement
def anomalies_are_found(dev):
    x = torch.zeros(2, device=dev).requires_grad_()
    with torch.autograd.detect_anomaly(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return refused(lambda: (x.sqrt() * 0).sum().backward(), "nan") or x.device.type != "cpu"


@statement
def module_hooks(dev):
    seen = []
    layer = made(dev, nn.Linear(3, 2))
    layer.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    layer.register_forward_hook(lambda module, args, out: out + 1)
    layer.register_full_backward_pre_hook(lambda module, grad: seen.append(grad[0].shape))
    out = layer(numbers(dev, 4, 3).requires_grad_())
    out.sum().backward()
    return out.detach(), str(seen)


@statement
def custom_functions_with_several_outputs(dev):
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.scale = scale
            ctx.save_for_backward(x)
            ctx.mark_non_differentiable(positive := x > 0)
            return x * scale, positive

        @staticmethod
        def backward(ctx, grad, _):
            return grad * ctx.scale + ctx.saved_tensors[0], None

    x = numbers(dev, 3).requires_grad_()
    out, positive = Both.apply(x, 3.0)
    out.sum().backward()
    return x.grad, positive


@statement
def custom_operators(dev):
    name = f"statements::twice_{torch.device(dev).type}"

    @torch.library.custom_op(name, mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(lambda x: torch.empty_like(x))
    twice.register_autograd(lambda ctx, grad: grad * 2)
    x = numbers(dev, 3).requires_grad_()
    twice(x).sum().backward()
    return x.grad, twice(numbers(dev, 3)), compiled(dev, lambda v: twice(v) + 1)(numbers(dev, 3))


@statement
def reentrant_checkpoints_of_a_sequence(dev):
    from torch.utils.checkpoint import checkpoint_sequential

    layers = nn.Sequential(*[made(dev, nn.Linear(3, 3)) for _ in range(4)])
    x = numbers(dev, 2, 3).requires_grad_()
    checkpoint_sequential(layers, 2, x, use_reentrant=False).sum().backward()
    return x.grad, layers[0].weight.grad


@statement
def checkpoints_with_dropout_repeat_their_mask(dev):
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(1)
    x = numbers(dev, 16).requires_grad_()
    y = checkpoint(lambda v: F.dropout(v, 0.5), x, use_reentrant=False)
    y.sum().backward()
    return torch.equal(y != 0, x.grad != 0) or dev == "cpu"


@statement
def selective_checkpoints(dev):
    from torch.utils import checkpoint

    def keep(ctx, op, *args, **kwargs):
        policy = checkpoint.CheckpointPolicy
        return policy.MUST_SAVE if op is torch.ops.aten.mm.default else policy.PREFER_RECOMPUTE

    x = numbers(dev, 3, 3).requires_grad_()
    contexts = lambda: checkpoint.create_selective_checkpoint_contexts(keep)  # noqa: E731
    checkpoint.checkpoint(lambda v: (v @ v).sin(), x, use_reentrant=False, context_fn=contexts).sum().backward()
    return x.grad


@statement
def dropout_follows_the_training_mode(dev):
    torch.manual_seed(0)
    layer = nn.Dropout(0.5)
    x = torch.ones(64, device=dev)
    return layer.eval()(x), layer.train()(x).shape, F.dropout2d(x.view(1, 4, 4, 4)).shape, F.alpha_dropout(x).shape


@statement
def layers_of_many_kinds(dev):
    x = numbers(dev, 2, 4, 6)
    return [
        made(dev, layer)(x).detach()
        for layer in (
            nn.Conv1d(4, 3, 2),
            nn.PReLU(),
            nn.Bilinear if False else nn.LayerNorm(6),
            nn.AvgPool1d(2),
            nn.ReplicationPad1d(1),
            nn.Flatten(),
            nn.Softmax(-1),
            nn.Hardswish(),
            nn.ZeroPad1d(1),
        )
    ]


@statement
def bilinear_and_distances(dev):
    x, y = numbers(dev, 3, 4), numbers(dev, 3, 4, seed=1)
    return (
        made(dev, nn.Bilinear(4, 4, 2))(x, y).detach(),
        torch.cdist(x, y),
        F.cosine_similarity(x, y),
        F.pairwise_distance(x, y),
        F.pdist(x),
    )


@statement
def resampling(dev):
    x = numbers(dev, 1, 2, 4, 4)
    grid = F.affine_grid(torch.eye(2, 3).unsqueeze(0).to(dev), (1, 2, 4, 4), align_corners=False)
    return (
        F.interpolate(x, size=6, mode="bilinear"),
        F.interpolate(x, scale_factor=0.5, mode="area"),
        F.grid_sample(x, grid, align_corners=False),
        F.pixel_shuffle(numbers(dev, 1, 4, 2, 2), 2),
        F.unfold(x, 2),
        F.fold(F.unfold(x, 2), (4, 4), 2),
    )


@statement
def pooling_with_indices(dev):
    x = numbers(dev, 1, 2, 4, 4)
    values, indices = F.max_pool2d(x, 2, return_indices=True)
    return values, indices, F.max_unpool2d(values, indices, 2), F.adaptive_max_pool2d(x, 2), F.lp_pool2d(x, 2, 2)


@statement
def batch_norm_keeps_statistics(dev):
    layer = made(dev, nn.BatchNorm2d(3))
    layer(numbers(dev, 4, 3, 2, 2))
    trained = layer.running_mean.clone(), layer.running_var.clone(), layer.num_batches_tracked.clone()
    return *trained, layer.eval()(numbers(dev, 1, 3, 2, 2)).detach()


@statement
def cells_and_bidirectional_layers(dev):
    x = numbers(dev, 2, 5, 3)
    cell = made(dev, nn.LSTMCell(3, 4))
    out, state = made(dev, nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True))(x)
    return cell(x[:, 0])[0].detach(), out.detach(), state[0].detach(), made(dev, nn.GRUCell(3, 4))(x[:, 0]).detach()


@statement
def packed_sequences(dev):
    from torch.nn.utils import rnn

    packed = rnn.pack_padded_sequence(numbers(dev, 2, 4, 3), torch.tensor([4, 2]), batch_first=True)
    out, _ = made(dev, nn.GRU(3, 2, batch_first=True))(packed)
    return rnn.pad_packed_sequence(out, batch_first=True)[0].detach(), rnn.pad_sequence(
        [numbers(dev, 3), numbers(dev, 2)]
    )


@statement
def multi_head_attention(dev):
    layer = made(dev, nn.MultiheadAttention(8, 2, batch_first=True))
    x = numbers(dev, 2, 4, 8)
    out, weights = layer(x, x, x, key_padding_mask=torch.tensor([[False] * 4, [False, False, True, True]]).to(dev))
    out.sum().backward()
    return out.detach(), weights.detach(), layer.in_proj_weight.grad


@statement
def attention_in_other_shapes(dev):
    q = numbers(dev, 4, 8)
    return (
        F.scaled_dot_product_attention(q, q, q),
        F.scaled_dot_product_attention(q[None], q[None], q[None], is_causal=True),
        F.scaled_dot_product_attention(*[numbers(dev, 1, 2, 3, 4).bfloat16()] * 3).dtype,
    )


@statement
def attention_backends_can_be_named(dev):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q = numbers(dev, 1, 2, 3, 4)
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, q, q)


@statement
def losses_of_other_kinds(dev):
    x = numbers(dev, 4, 5).log_softmax(1)
    y = torch.tensor([0, 4, -100, 1]).to(dev)
    return (
        F.cross_entropy(x, y),
        F.cross_entropy(x, y, weight=torch.ones(5, device=dev), reduction="none"),
        F.huber_loss(x, x + 1),
        F.margin_ranking_loss(x[0], x[1], torch.ones(5, device=dev)),
        F.triplet_margin_loss(x, x + 1, x - 1),
        F.ctc_loss(
            x[:, None].repeat(1, 2, 1),
            torch.tensor([[1, 2], [2, 3]]).to(dev),
            torch.tensor([4, 4]),
            torch.tensor([2, 1]),
        ),
        F.gaussian_nll_loss(x, x, x.exp()),
        F.binary_cross_entropy(x.exp().clamp(0, 1), torch.ones(4, 5, device=dev)),
    )


def trained(dev, make, steps=3, **settings):
    model = made(dev, nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)))
    optimizer = make(model.parameters(), **settings)
    for seed in range(steps):
        optimizer.zero_grad(set_to_none=seed % 2 == 0)
        model(numbers(dev, 5, 4, seed=seed)).square().mean().backward()
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


@statement
def optimizers_of_every_kind(dev):
    kinds = {
        "Adamax": {},
        "NAdam": {},
        "RAdam": {},
        "Adadelta": {},
        "ASGD": {},
        "Rprop": {},
        "SGD": {"nesterov": True, "momentum": 0.9},
    }
    return [trained(dev, getattr(torch.optim, kind), lr=0.01, **settings) for kind, settings in kinds.items()]


@statement
def optimizers_with_switches(dev):
    adam = torch.optim.AdamW
    return [trained(dev, adam, lr=0.01, **{switch: True}) for switch in ("amsgrad", "maximize")]


@statement
def optimizers_with_a_tensor_as_rate(dev):
    return trained(dev, torch.optim.Adam, lr=torch.tensor(0.01), capturable=False, foreach=False)


@statement
def optimizers_with_a_closure(dev):
    model = made(dev, nn.Linear(4, 1))
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = model(numbers(dev, 5, 4)).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    return model.weight.detach().shape


@statement
def optimizers_resume(dev):
    model = made(dev, nn.Linear(4, 2))
    first = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(numbers(dev, 3, 4)).sum().backward()
    first.step()
    stored = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": first.state_dict()}, stored)
    stored.seek(0)
    found = torch.load(stored, map_location="cpu", weights_only=True)
    twin = nn.Linear(4, 2).to(dev)
    twin.load_state_dict(found["model"])
    second = torch.optim.AdamW(twin.parameters(), lr=0.1)
    second.load_state_dict(found["optimizer"])
    twin(numbers(dev, 3, 4)).sum().backward()
    second.step()
    return twin.weight.detach(), second.state[twin.weight]["exp_avg"].device.type == torch.device(dev).type


@statement
def parameter_groups_and_schedules(dev):
    model = made(dev, nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1)))
    groups = [{"params": model[0].parameters(), "lr": 0.1}, {"params": model[1].parameters(), "weight_decay": 0.1}]
    optimizer = torch.optim.SGD(groups, lr=0.01)
    schedules = torch.optim.lr_scheduler
    warm = schedules.LinearLR(optimizer, 0.1, total_iters=2)
    schedule = schedules.SequentialLR(optimizer, [warm, schedules.CosineAnnealingLR(optimizer, 4)], [2])
    rates = []
    for _ in range(4):
        model(numbers(dev, 2, 3)).sum().backward()
        optimizer.step()
        schedule.step()
        rates.append(schedule.get_last_lr())
    return model[0].weight.detach(), str(rates)


@statement
def schedules_that_look_at_the_loss(dev):
    weight = nn.Parameter(numbers(dev, 2))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    for loss in (1.0, 2.0, 3.0):
        schedule.step(torch.tensor(loss).to(dev) if dev == "cpu" else loss)
    return optimizer.param_groups[0]["lr"]


@statement
def averaged_models(dev):
    model = made(dev, nn.Linear(3, 2))
    mean = torch.optim.swa_utils.AveragedModel(model)
    moving = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    for _ in range(2):
        with torch.no_grad():
            model.weight.add_(1)
        mean.update_parameters(model)
        moving.update_parameters(model)
    return mean.module.weight.detach(), moving.module.weight.detach(), mean.n_averaged


@statement
def scaled_gradients(dev):
    model = made(dev, nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(torch.device(dev).type, init_scale=4.0)
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale(model(numbers(dev, 3, 4)).square().mean()).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
    return model.weight.detach(), scaler.get_scale(), sorted(scaler.state_dict())


@statement
def clipping(dev):
    model = made(dev, nn.Linear(4, 2))
    model(numbers(dev, 3, 4)).sum().backward()
    norm = nn.utils.get_total_norm([p.grad for p in model.parameters()])
    nn.utils.clip_grad_norm_(model.parameters(), 0.1, norm_type=float("inf"), foreach=False)
    return norm, model.weight.grad, nn.utils.parameters_to_vector(model.parameters()).detach()


@statement
def parametrizations_and_pruning(dev):
    from torch.nn.utils import parametrizations, prune

    layer = parametrizations.weight_norm(made(dev, nn.Linear(3, 2)))
    cut = made(dev, nn.Linear(4, 4))
    prune.l1_unstructured(cut, "weight", 0.5)
    return layer(numbers(dev, 1, 3)).detach(), cut.weight.detach(), (cut.weight == 0).sum()


@statement
def autocast_keeps_its_lists(dev):
    kind = torch.device(dev).type
    x = numbers(dev, 3, 3)
    with torch.autocast(kind, torch.bfloat16):
        inside = (x @ x).dtype, F.linear(x, x).dtype, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)
        with torch.autocast(kind, enabled=False):
            off = (x @ x).dtype
    return *inside, off, (x @ x).dtype


@statement
def autocast_in_fp32_where_it_matters(dev):
    x = numbers(dev, 3, 3).bfloat16()
    with torch.autocast(torch.device(dev).type, torch.bfloat16):
        return F.mse_loss(x, x * 2).dtype, F.nll_loss(x.float().log_softmax(1), torch.tensor([0, 1, 2]).to(dev)).dtype


@statement
def autocast_with_gradients(dev):
    model = made(dev, nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 2)))
    with torch.autocast(torch.device(dev).type, torch.bfloat16):
        loss = model(numbers(dev, 3, 4)).float().square().mean()
    loss.backward()
    return [parameter.grad.dtype for parameter in model.parameters()]


@statement
def modules_are_made_on_the_device(dev):
    layer = nn.Linear(3, 2, device=dev, dtype=torch.bfloat16)
    with torch.device("meta"):
        ghost = nn.Linear(3, 2)
    ghost.to_empty(device=dev)
    nn.init.ones_(ghost.weight)
    nn.init.xavier_uniform_(layer.weight)
    return layer.weight.dtype, ghost.weight.detach(), nn.utils.skip_init(nn.Linear, 3, 2, device=dev).weight.shape


@statement
def state_dicts(dev):
    model = made(dev, nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)))
    there = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    there.load_state_dict(model.state_dict())
    other = copy.deepcopy(model)
    other.load_state_dict(there.state_dict(), assign=True)
    return (
        there[0].weight.device.type,
        there[0].weight.detach(),
        other[0].weight.device.type,
        refused(lambda: model.load_state_dict({}), "Missing"),
    )


@statement
def files_are_read_onto_the_device(dev):
    stored = io.BytesIO()
    torch.save({"x": torch.arange(3), "p": nn.Parameter(torch.ones(2))}, stored)
    stored.seek(0)
    found = torch.load(stored, map_location=dev, weights_only=True)
    return (
        found["x"],
        found["p"].detach(),
        isinstance(found["p"], nn.Parameter),
        found["x"].device.type == torch.device(dev).type,
    )


@statement
def old_files(dev):
    stored = io.BytesIO()
    torch.save(numbers(dev, 3), stored, _use_new_zipfile_serialization=False)
    stored.seek(0)
    return torch.load(stored, weights_only=False)


@statement
def modules_pickle(dev):
    model = pickle.loads(pickle.dumps(made(dev, nn.Linear(3, 2))))
    return model.weight.detach(), model.weight.device.type == torch.device(dev).type, model.weight.requires_grad


@statement
def compiled_functions(dev):
    x = numbers(dev, 3, 4)
    return compiled(dev, lambda v: (v.sin() * 2).sum(1))(x), compiled(dev, lambda v, n: v * n, fullgraph=True)(x, 3)


@statement
def compiled_gradients(dev):
    layer = made(dev, nn.Linear(4, 2))
    run = compiled(dev, layer)
    x = numbers(dev, 3, 4).requires_grad_()
    run(x).square().sum().backward()
    return x.grad, layer.weight.grad


@statement
def compiled_regions_change_their_inputs(dev):
    def change(v, log):
        v.add_(1)
        log.append(v.shape)
        return v.view(-1)

    x, log = numbers(dev, 3, 4), []
    out = compiled(dev, change)(x, log)
    return x, out, str(log), out.data_ptr() == x.data_ptr()


@statement
def compiled_regions_break(dev):
    def broken(v):
        v = v + 1
        if v.sum().item() > -1e9:
            v = v * 2
        torch._dynamo.graph_break()
        return v - 1

    return compiled(dev, broken)(numbers(dev, 3))


@statement
def compiled_regions_take_the_host_too(dev):
    """Facts, section 2: inputs of the host are copied to the device; Dynamo itself refuses both in one operator."""
    x, y = numbers(dev, 3, 4), numbers("cpu", 3, 4, seed=1)
    with torch.no_grad():
        mixed = dev == "cpu" or refused(lambda: compiled(dev, lambda a, b: a * 2 + b)(x, y), "same device")
        return mixed, compiled(dev, lambda a, b: (a * 2, b + 1))(x, y), compiled(dev, lambda a, b: a - b)(y, y)


@statement
def compiled_modules_are_modules(dev):
    model = made(dev, nn.Sequential(nn.Linear(3, 2)))
    run = compiled(dev, model)
    names = [name.removeprefix("_orig_mod.") for name in run.state_dict()]
    return names, run(numbers(dev, 2, 3)).detach(), isinstance(run, nn.Module)


@statement
def dynamic_shapes_are_refused(dev):
    if dev == "cpu":
        return True, True
    marked = numbers(dev, 3, 4)
    torch._dynamo.mark_dynamic(marked, 0)
    return (
        refused(lambda: torch.compile(lambda v: v + 1, backend="neuron", dynamic=True)(numbers(dev, 3, 4)), "ynamic"),
        refused(lambda: torch.compile(lambda v: v + 2, backend="neuron")(marked), "ynamic"),
    )


@statement
def exported_programs_run(dev):
    model = made(dev, nn.Linear(3, 2)).eval()
    program = torch.export.export(model, (numbers(dev, 2, 3),))
    return program.module()(numbers(dev, 2, 3)).detach()


@statement
def scripted_and_traced_functions(dev):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(lambda v: v * 2 + 1, numbers(dev, 3))
        model = torch.jit.script(made(dev, nn.Sequential(nn.Linear(3, 2), nn.ReLU())))
    return traced(numbers(dev, 3)), model(numbers(dev, 2, 3)).detach()


@statement
def symbolic_traces(dev):
    model = torch.fx.symbolic_trace(made(dev, nn.Sequential(nn.Linear(3, 2), nn.ReLU())))
    return model(numbers(dev, 2, 3)).detach(), len(list(model.graph.nodes))


@statement
def generators(dev):
    one = torch.Generator(device=dev).manual_seed(3)
    state = one.get_state()
    first = torch.randn(3, generator=one, device=dev)
    one.set_state(state)
    again = torch.randn(3, generator=one, device=dev)
    return (
        first,
        torch.equal(first, again),
        one.initial_seed(),
        torch.randperm(5, generator=one, device=dev),
        isinstance(one, torch.Generator),
    )


@statement
def random_state_is_kept(dev):
    module = torch.neuron if dev != "cpu" else torch
    torch.manual_seed(1)
    state = module.get_rng_state()
    first = torch.rand(3, device=dev)
    module.set_rng_state(state)
    with torch.random.fork_rng(devices=[]):
        torch.rand(2, device=dev)
    return first, torch.rand(3, device=dev)


@statement
def random_operators(dev):
    torch.manual_seed(0)
    x = torch.full((8,), 0.5).to(dev)
    return (
        x.bernoulli(),
        torch.multinomial(x, 3),
        torch.normal(x, x),
        x.uniform_(),
        x.exponential_(),
        torch.randint_like(x, 9),
        torch.poisson(x),
    )


@statement
def distributions(dev):
    torch.manual_seed(0)
    normal = torch.distributions.Normal(torch.zeros(3, device=dev), torch.ones(3, device=dev))
    kind = torch.distributions.Categorical(logits=numbers(dev, 4))
    return normal.sample(), normal.log_prob(torch.ones(3, device=dev)), kind.sample(), kind.entropy()


@statement
def the_accelerator(dev):
    if dev == "cpu":
        return [True] * 6
    accelerator = torch.accelerator
    accelerator.set_device_index(0)
    with accelerator.device_index(0):
        index = accelerator.current_device_index()
    stream = accelerator.current_stream()
    accelerator.synchronize()
    accelerator.empty_cache()
    return [
        accelerator.is_available(),
        accelerator.device_count() >= 1,
        index == 0,
        stream.device.type == "neuron",
        accelerator.memory_allocated() == 0,
        accelerator.current_accelerator().type == "neuron",
    ]


@statement
def streams_and_events(dev):
    if dev == "cpu":
        return [True] * 5
    stream, event = torch.Stream(device=dev), torch.Event(device=dev, enable_timing=True)
    own = torch.neuron.Event(enable_timing=True)
    with torch.neuron.stream(torch.neuron.Stream()):
        own.record()
    other = torch.neuron.Event(enable_timing=True)
    other.record()
    x = numbers(dev, 3)
    x.record_stream(torch.neuron.current_stream())
    return [
        stream.device.type == "neuron",
        event.query(),
        own.elapsed_time(other) >= 0,
        own.query(),
        torch.neuron.query(),
    ]


@statement
def memory_follows_what_lives(dev):
    if dev == "cpu":
        return [True] * 4
    torch.neuron.reset_peak_memory_stats()
    x = torch.empty(1024, device=dev)
    now = torch.neuron.memory_allocated()
    view = x[10:]
    del x
    kept = torch.neuron.memory_allocated()
    del view
    return [
        now == 4096,
        kept == 4096,
        torch.neuron.memory_allocated() == 0,
        torch.neuron.max_memory_allocated() == 4096,
    ]


@statement
def backward_in_a_thread(dev):
    x = numbers(dev, 3).requires_grad_()
    y = x.exp().sum()
    worker = threading.Thread(target=y.backward)
    worker.start()
    worker.join()
    return x.grad


@statement
def data_parallel_of_one(dev):
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(6.0)), batch_size=4)
    return [batch.to(dev) * 2 for (batch,) in loader]


@statement
def profiling(dev):
    from torch.profiler import profile

    with profile() as run:
        numbers(dev, 3, 3) @ numbers(dev, 3, 3)
    return any("aten::m" in row.key for row in run.key_averages())


@statement
def modes_see_operators(dev):
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import FlopCounterMode

    class Log(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names.append(str(func))
            return func(*args, **(kwargs or {}))

    x = numbers(dev, 3, 3)
    with Log() as log:
        x.sin() + 1
    with FlopCounterMode(display=False) as flops:
        x @ x
    return log.names, flops.get_total_flops()


@statement
def subclasses(dev):
    class Named(torch.Tensor):
        pass

    x = numbers(dev, 3).as_subclass(Named)
    return (
        type(x + 1).__name__,
        type(x[1:]).__name__,
        (x + 1).as_subclass(torch.Tensor),
        isinstance(nn.Parameter(x), nn.Parameter),
    )


@statement
def fake_tensors(dev):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        x = torch.empty(3, 4, device=dev)
        y = (x @ x.t()).softmax(1)
    real = mode.from_tensor(numbers(dev, 2, 3))
    return tuple(y.shape), y.device.type == torch.device(dev).type, tuple((real + 1).shape)


@statement
def deterministic_algorithms(dev):
    torch.use_deterministic_algorithms(True)
    try:
        x = numbers(dev, 4, 3)
        return x.index_add(0, torch.tensor([0, 0]).to(dev), torch.ones(2, 3).to(dev)), x.cumsum(0)
    finally:
        torch.use_deterministic_algorithms(False)


@statement
def weights_are_tied_and_frozen(dev):
    model = nn.ModuleDict({"embed": nn.Embedding(5, 3), "head": nn.Linear(3, 5, bias=False)})
    model["head"].weight = model["embed"].weight
    made(dev, model)
    model["embed"].weight.requires_grad_(False)
    return (
        model["head"].weight is model["embed"].weight,
        sum(p.requires_grad for p in model.parameters()),
        gradients(F.gelu, numbers(dev, 3))[1],
    )


@statement
def linear_algebra_of_other_kinds(dev):
    x = numbers(dev, 3, 3)
    spd = x @ x.t() + torch.eye(3, device=dev)
    return (
        torch.linalg.eigvalsh(spd),
        torch.linalg.svdvals(x),
        torch.linalg.lstsq(spd, x).solution,
        torch.linalg.matrix_norm(x),
        torch.linalg.pinv(spd),
        torch.linalg.slogdet(spd),
        torch.trapezoid(x),
        torch.kron(x, x),
        torch.linalg.matrix_power(x, 2),
        torch.outer(x[0], x[1]),
        torch.cross(x, x + 1, dim=1),
    )


@statement
def grouped_lists_of_tensors(dev):
    xs, ys = [numbers(dev, 2), numbers(dev, 3)], [numbers(dev, 2, seed=1), numbers(dev, 3, seed=1)]
    torch._foreach_add_(xs, ys, alpha=2)
    torch._foreach_mul_(xs, [2.0, 3.0])
    torch._foreach_lerp_(xs, ys, 0.5)
    return *xs, *torch._foreach_norm(xs), *torch._foreach_sqrt([y.abs() for y in ys]), *torch._foreach_div(xs, 2.0)
