"""node2vec: features of nodes from biased random walks (Grover and Leskovec, 2016), by gensim's skip-gram."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array

from qrl.common.errors import ConfigError
from qrl.common.settings import Settings
from qrl.envs.graphs.graph import Graph, Ids


class WalkSettings(Settings):
    walks: int = Field(10, ge=1, description="walks that begin in each node")
    length: int = Field(40, ge=2, description="nodes of a walk")
    p: float = Field(1, ge=0.01, le=100, description="how rarely a walk goes back at once")
    q: float = Field(
        1, ge=0.01, le=100, description="how rarely it goes on to nodes that the last one does not lead to"
    )
    along: bool = Field(False, description="walk only along the edges; else also against them, which has no dead ends")
    window: int = Field(5, ge=1, description="nodes of a walk that count as near to each other")
    epochs: int = Field(1, ge=1, description="passes of skip-gram over the walks")


def walk(edges: csr_array, starts: Ids, settings: WalkSettings, rng: np.random.Generator) -> Ids:
    """(walks, length): all walks at once, a step at a time; -1 after a dead end.

    A step to x from v, where the walk was in t before, has the weight 1/p if x = t, 1 if there is an edge from t to x,
    and else 1/q: candidates are drawn uniformly and kept with a probability that is proportional to it.
    """
    degree = np.diff(edges.indptr)
    count = edges.shape[0]
    keys = np.repeat(np.arange(count), degree).astype(np.int64) * count + edges.indices  # sorted
    biased = (settings.p, settings.q) != (1, 1)
    largest = max(1, 1 / settings.p, 1 / settings.q)
    walks = np.full((len(starts), settings.length), -1, np.int64)
    walks[:, 0] = starts
    for step in range(1, settings.length):
        waiting = np.flatnonzero(walks[:, step - 1] >= 0)
        waiting = waiting[degree[walks[waiting, step - 1]] > 0]
        while len(waiting):
            here = walks[waiting, step - 1]
            candidate = edges.indices[edges.indptr[here] + (rng.random(len(here)) * degree[here]).astype(np.int64)]
            kept = np.ones(len(here), bool)
            if biased and step > 1:
                last = walks[waiting, step - 2]
                weight = np.where(_contains(keys, last * count + candidate), 1, 1 / settings.q)
                weight = np.where(candidate == last, 1 / settings.p, weight)
                kept = (rng.random(len(here)) * largest < weight) | (degree[here] == 1)
            walks[waiting[kept], step] = candidate[kept]
            waiting = waiting[~kept]
    return walks


def _contains(keys: Ids, wanted: Ids) -> NDArray[np.bool_]:
    place = np.searchsorted(keys, wanted)
    found: NDArray[np.bool_] = keys[np.minimum(place, len(keys) - 1)] == wanted
    return found


class _Corpus:
    """Walks as sentences, drawn anew in each pass, so that they never lie in memory together."""

    def __init__(self, graph: Graph, settings: WalkSettings, seed: int) -> None:
        # Edges are sorted within a row, which `walk` relies on.
        self.edges = graph.edges if settings.along else (graph.edges + graph.reversed).tocsr()
        self.edges.sort_indices()
        self.settings = settings
        self.seed = seed
        self.words = [str(node) for node in range(graph.num_nodes)]

    def __iter__(self) -> Iterator[list[str]]:
        rng = np.random.default_rng(self.seed)
        for _ in range(self.settings.walks):
            order = rng.permutation(len(self.words))
            for starts in np.array_split(order, max(1, len(order) // 65536)):
                for nodes in walk(self.edges, starts, self.settings, rng).tolist():
                    yield [self.words[node] for node in nodes if node >= 0]


def node2vec(graph: Graph, size: int, settings: WalkSettings, seed: int) -> NDArray[np.float32]:
    """(nodes, size). One thread, because several would give other numbers every time."""
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise ConfigError("node2vec features need gensim; install it with: pip install 'qrl[graphs]'") from None
    corpus = _Corpus(graph, settings, seed)
    # sample=0: in a graph no node is so frequent that it says nothing.
    model = Word2Vec(
        vector_size=size,
        window=settings.window,
        sg=1,
        min_count=0,
        sample=0,
        workers=1,
        seed=seed % 2**32,
        epochs=settings.epochs,
    )
    # Walks visit nodes about as often as they have edges; counting them would need another pass.
    frequencies = 1 + np.diff(corpus.edges.indptr)
    model.build_vocab_from_freq(dict(zip(corpus.words, frequencies.tolist(), strict=True)))
    model.train(
        corpus,
        total_examples=settings.walks * graph.num_nodes,
        total_words=settings.walks * settings.length * graph.num_nodes,
        epochs=settings.epochs,
    )
    return np.asarray(model.wv[corpus.words], np.float32)
