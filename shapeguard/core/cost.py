"""How long a graph may take to compile, where nobody has compiled it yet.

A guess by size alone, after what is said of Neuron: seconds for a few operators, minutes for a layer, up to an hour for
a whole large model. Nothing of it was measured on Trainium; where a record knows the real seconds, that counts.
"""

from __future__ import annotations

EAGER_S = 3.0
"""One eager operator."""
_START_S = 20.0
_NODE_S = 0.5
_MOST_S = 3600.0


def compile_s(nodes: int) -> float:
    """Give a guess of the seconds for a graph of so many nodes."""
    return min(_START_S + _NODE_S * max(nodes, 0), _MOST_S)
