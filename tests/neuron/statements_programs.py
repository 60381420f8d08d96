"""Statements of the third kind: what programs are made of beyond tensors and layers."""

import copy
import io
import threading

import torch
from statement_kit import compiled, gradients, made, numbers, refused, statement
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


@statement
def nested_tensors_by_offsets(dev):
    rows = [numbers(dev, 2, 4), numbers(dev, 3, 4, seed=1)]
    ragged = torch.nested.nested_tensor(rows, layout=torch.jagged)
    doubled = ragged * 2
    return doubled.values(), doubled.offsets(), [row.shape[0] for row in doubled.unbind()], ragged.sum(-1).values()


@statement
def functional_gradients(dev):
    model = made(dev, nn.Linear(4, 3))
    state = dict(model.named_parameters())

    def loss(state, x, y):
        return F.mse_loss(torch.func.functional_call(model, state, (x,)), y)

    x, y = numbers(dev, 5, 4), numbers(dev, 5, 3, seed=1)
    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(state, x, y)
    value, tangent = torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))
    hessian = torch.func.hessian(lambda z: (z**3).sum())(x[0])
    return each["weight"], each["bias"], value, tangent, hessian


@statement
def stacked_models(dev):
    models = [made(dev, nn.Linear(4, 2)) for _ in range(3)]
    state, buffers = torch.func.stack_module_state(models)
    base = copy.deepcopy(models[0]).to("meta")
    x = numbers(dev, 5, 4)
    return torch.vmap(lambda p, b: torch.func.functional_call(base, (p, b), (x,)))(state, buffers)


@statement
def parametrized_weights(dev):
    normed = nn.utils.parametrizations.weight_norm(made(dev, nn.Linear(4, 3)))
    whitened = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3), n_power_iterations=2).to(dev)
    orthogonal = nn.utils.parametrizations.orthogonal(nn.Linear(4, 3)).to(dev)
    gram = orthogonal.weight @ orthogonal.weight.t()
    found = gradients(normed, numbers(dev, 2, 4))
    nn.utils.parametrize.remove_parametrizations(normed, "weight")
    return (*found, normed.weight, whitened.weight.shape, gram.shape)


@statement
def packed_sequences_padded_to_a_length(dev):
    cell = made(dev, nn.GRU(3, 5, batch_first=True, bidirectional=True))
    x, lengths = numbers(dev, 3, 6, 3), torch.tensor([6, 4, 2])
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
    out, last = cell(packed)
    padded, sizes = nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=6)
    padded.sum().backward()
    return padded, sizes, last, cell.weight_ih_l0.grad


@statement
def hooks_on_the_nodes_of_autograd(dev):
    seen = []
    x = numbers(dev, 3).requires_grad_()
    y = x * 2
    y.grad_fn.register_hook(lambda ins, outs: seen.append(("node", outs[0].shape)))
    y.grad_fn.register_prehook(lambda outs: (outs[0] * 3,))
    y.register_hook(lambda grad: grad * 5)
    x.register_post_accumulate_grad_hook(lambda tensor: seen.append(("leaf", tensor.grad.shape)))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.cpu(), lambda t: t.to(dev)):
        z = (y * y).sum()
    z.backward()
    return x.grad, str(seen)


@statement
def a_function_with_its_own_backward(dev):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            ctx.scale = scale
            ctx.mark_non_differentiable(kept := x > 0)
            return scale * x**3, kept

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad, _):
            (x,) = ctx.saved_tensors
            return grad * 3 * ctx.scale * x * x, None

    x = numbers(dev, 4).requires_grad_()
    cubed, kept = Cube.apply(x, 2.0)
    cubed.sum().backward()
    return cubed.detach(), kept, x.grad, compiled(dev, lambda t: Cube.apply(t, 2.0)[0])(x).detach()


@statement
def checkpoints_draw_the_same_numbers_again(dev):
    torch.manual_seed(0)
    model = made(dev, nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 4)))
    found = []
    for reentrant in (True, False):
        x = numbers(dev, 3, 4).requires_grad_()
        out = checkpoint(model, x, use_reentrant=reentrant, preserve_rng_state=True)
        out.sum().backward()
        found += [out.detach(), x.grad]
    return found


@statement
def a_checkpoint_inside_of_a_region_draws_them_again(dev):
    torch.manual_seed(0)
    model = made(dev, nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 4)))
    x = numbers(dev, 3, 4).requires_grad_()
    run = compiled(dev, lambda t: checkpoint(model, t, use_reentrant=False))
    run(x).sum().backward()
    # Which numbers are drawn differs from eager; that forward and backward agree doesn't.
    dropped = (x.grad == 0).all(dim=1)
    return x.grad.shape, dropped.shape, model[0].weight.grad.shape


@statement
def every_way_of_an_optimizer(dev):
    found = []
    for settings in ({"foreach": True}, {"foreach": False}, {"fused": True}, {"capturable": True}, {"maximize": True}):
        if dev == "cpu" and "capturable" in settings:
            settings = {}
        model = made(dev, nn.Linear(4, 3))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, amsgrad=True, **settings)
        for _ in range(2):
            model(numbers(dev, 5, 4)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        found.append(model.weight.detach())
    return found


@statement
def a_compiled_step_of_an_optimizer(dev):
    model = made(dev, nn.Linear(4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
    step = compiled(dev, optimizer.step)
    for _ in range(3):
        model(numbers(dev, 5, 4)).square().sum().backward()
        step()
        optimizer.zero_grad()
    return model.weight.detach()


@statement
def states_go_from_device_to_device(dev):
    first = made(dev, nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)))
    optimizer = torch.optim.Adam(first.parameters(), lr=0.1)
    first(numbers(dev, 5, 4)).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save({"model": first.state_dict(), "optimizer": optimizer.state_dict()}, file)
    found = []
    for where in ("cpu", dev, None):
        file.seek(0)
        saved = torch.load(file, map_location=where, weights_only=True)
        second = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).to(dev)
        second.load_state_dict(saved["model"], assign=where == dev)
        again = torch.optim.Adam(second.parameters(), lr=0.1)
        again.load_state_dict(saved["optimizer"])
        second(numbers(dev, 5, 4)).sum().backward()
        again.step()
        state = again.state[second[0].weight]
        found += [second[0].weight.detach(), state["exp_avg"], float(state["step"]), int(second[1].num_batches_tracked)]
    return found


@statement
def threads_that_serve_one_model(dev):
    model = made(dev, nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))).eval()
    run = compiled(dev, model)
    with torch.no_grad():
        run(numbers(dev, 3, 4))
    found = {}

    def serve(place):
        with torch.inference_mode():
            for _ in range(5):
                found[place] = run(numbers(dev, 3, 4, seed=place)).cpu()

    threads = [threading.Thread(target=serve, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[place] for place in sorted(found)]


@statement
def a_loader_that_knows_where_it_is(dev):
    class Rows(torch.utils.data.IterableDataset):
        def __init__(self):
            self.place = 0

        def __iter__(self):
            while self.place < 6:
                self.place += 1
                yield torch.tensor([float(self.place)])

        def state_dict(self):
            return {"place": self.place}

        def load_state_dict(self, state):
            self.place = state["place"]

    rows = Rows()
    iterator = iter(torch.utils.data.DataLoader(rows, batch_size=2))
    first = next(iterator).to(dev)
    again = Rows()
    again.load_state_dict(rows.state_dict())
    return first, [batch.to(dev) for batch in torch.utils.data.DataLoader(again, batch_size=2)]


@statement
def numbers_that_are_counted_on_the_device(dev):
    step, rate = torch.zeros((), device=dev), torch.tensor([0.1], device=dev)
    for _ in range(3):
        step += 1
        rate.mul_(0.5)
    total = torch.zeros((), device=dev)
    total += numbers(dev, 3).sum()
    scaler = torch.amp.GradScaler(dev, init_scale=8.0, growth_interval=1, enabled=True)
    weight = numbers(dev, 3).requires_grad_()
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    # Without values these hold too: they follow from numbers of the host alone.
    assert (step.item(), round(rate.item(), 4), scaler.get_scale()) == (3.0, 0.0125, 16.0)
    return step, rate, total, weight.detach()


@statement
def tensors_of_the_host_in_a_region(dev):
    host = torch.ones(3)
    beside = compiled(dev, lambda x, y: (x * 2, y * 3))(numbers(dev, 3), host)
    scalar = compiled(dev, lambda x, y: x * y)(numbers(dev, 3), torch.tensor(2.0))
    places = compiled(dev, lambda x, y: x[y])(numbers(dev, 3), torch.tensor([0, 2]))
    # In one operator with a tensor of the device torch refuses it for every device, before any backend is asked.
    mixed = dev == "cpu" or refused(lambda: compiled(dev, lambda x, y: x + y)(numbers(dev, 3), host), "device")
    return *beside, scalar, places, mixed


@statement
def sparse_layouts_are_refused(dev):
    if dev == "cpu":
        return True
    rows, columns, values = torch.tensor([0, 1, 2]).to(dev), torch.tensor([0, 1]).to(dev), torch.ones(2).to(dev)
    makers = [
        lambda: torch.sparse_csr_tensor(rows, columns, values),
        lambda: torch.sparse_csc_tensor(rows, columns, values),
        lambda: torch.sparse_bsr_tensor(rows, columns, values.view(2, 1, 1)),
        lambda: torch.sparse_coo_tensor(torch.stack([columns, columns]), values),
        lambda: torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], device=dev),
        lambda: torch.eye(2).to_sparse_csr().to(dev),
        lambda: torch.eye(2).to(dev).to_sparse(),
    ]
    return all(refused(make, "neuron has no sparse tensors") for make in makers)
