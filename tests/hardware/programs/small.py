"""A bit of everything that compiles: ragged compiled training, eager operators of every kind, reads, host operators."""

import torch

device = torch.device("neuron")
torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 8)
        self.second = torch.nn.Linear(8, 1)

    def forward(self, x):
        return self.second(self.first(x).relu()).mean()


model = Net().to(device)
compiled = torch.compile(model, backend="neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
for length in (4, 4, 6, 3):
    batch = torch.randn(length, 8).to(device)
    loss = compiled(batch)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    schedule.step()

with torch.no_grad():
    x = torch.randn(4, 6).to(device)
    whole = torch.arange(24, device=device).reshape(4, 6)
    (x.t() + 1).sum()
    (x[:, 2:4] * 2).contiguous()
    x.expand(2, 4, 6) + 1
    x[whole[0] % 4]
    x[x > 0] + 1
    x[x > 1] = 0.0
    (whole & 1).clone()
    whole.to(torch.float32).to(torch.bfloat16)
    torch.cat([x, x], dim=1)
    x.sort()
    x.sum(dim=1)[0].item()
    torch.zeros(3, device=device).fill_(2.0)
    x[:0].sum()
    (x[:, ::2] + 1).bool()
