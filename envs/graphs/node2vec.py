"""node2vec (Grover and Leskovec, 2016): node features from biased random walks, trained by gensim's skip-gram."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_array

from qrl.common.errors import ConfigError
from qrl.common.settings import Settings
from qrl.envs.graphs.graph import Graph, Ids


class WalkSettings(Settings):
    walks: int = Field(10, ge=1, description="number of walks per start node")
    length: int = Field(40, ge=2, description="nodes per walk")
    p: float = Field(1, ge=0.01, le=100, description="return parameter: larger values discourage backtracking")
    q: float = Field(1, ge=0.01, le=100, description="in-out parameter: larger values keep walks local")
    along: bool = Field(False, description="follow edges forward only; else both ways, which avoids dead ends")
    window: int = Field(5, ge=1, description="context window of skip-gram")
    epochs: int = Field(1, ge=1, description="epochs of skip-gram over the walks")


def random_walks(edges: csr_array, starts: Ids, settings: WalkSettings, rng: np.random.Generator) -> Ids:
    """(walks, length): one walk per start, all advanced together; -1 after a dead end.

    A step from v to x, after a step from t to v, has weight 1/p if x = t, 1 if there is an edge from t to x, and 1/q
    otherwise. Sampled by rejection: uniform candidates are accepted with probability proportional to the weight.
    """
    degree = np.diff(edges.indptr)
    count = edges.shape[0]
    edge_keys = np.repeat(np.arange(count), degree).astype(np.int64) * count + edges.indices  # sorted
    biased = (settings.p, settings.q) != (1, 1)
    largest = max(1, 1 / settings.p, 1 / settings.q)
    walks = np.full((len(starts), settings.length), -1, np.int64)
    walks[:, 0] = starts
    for step in range(1, settings.length):
        pending = np.flatnonzero(walks[:, step - 1] >= 0)
        pending = pending[degree[walks[pending, step - 1]] > 0]
        while len(pending):
            node = walks[pending, step - 1]
            candidate = edges.indices[edges.indptr[node] + (rng.random(len(node)) * degree[node]).astype(np.int64)]
            accepted = np.ones(len(node), bool)
            if biased and step > 1:
                previous = walks[pending, step - 2]
                weight = np.where(_contains(edge_keys, previous * count + candidate), 1, 1 / settings.q)
                weight = np.where(candidate == previous, 1 / settings.p, weight)
                accepted = (rng.random(len(node)) * largest < weight) | (degree[node] == 1)
            walks[pending[accepted], step] = candidate[accepted]
            pending = pending[~accepted]
    return walks


def _contains(sorted_keys: Ids, keys: Ids) -> NDArray[np.bool_]:
    index = np.searchsorted(sorted_keys, keys)
    contained: NDArray[np.bool_] = sorted_keys[np.minimum(index, len(sorted_keys) - 1)] == keys
    return contained


class _Corpus:
    """Walks as sentences, generated on the fly in every pass so that they are never all in memory."""

    def __init__(self, graph: Graph, settings: WalkSettings, seed: int) -> None:
        # `random_walks` needs sorted indices within each row.
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
                for nodes in random_walks(self.edges, starts, self.settings, rng).tolist():
                    yield [self.words[node] for node in nodes if node >= 0]


def node2vec(graph: Graph, size: int, settings: WalkSettings, seed: int) -> NDArray[np.float32]:
    """(nodes, size): features. Single-threaded, because gensim is not reproducible with several threads."""
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise ConfigError("features=node2vec needs gensim; in the checkout, run: pip install -e '.[graphs]'") from None
    corpus = _Corpus(graph, settings, seed)
    # sample=0: no downsampling; frequent nodes are as informative as others.
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
    # Visit counts are roughly proportional to degrees; exact counts would need another pass.
    frequencies = 1 + np.diff(corpus.edges.indptr)
    model.build_vocab_from_freq(dict(zip(corpus.words, frequencies.tolist(), strict=True)))
    model.train(
        corpus,
        total_examples=settings.walks * graph.num_nodes,
        total_words=settings.walks * settings.length * graph.num_nodes,
        epochs=settings.epochs,
    )
    return np.asarray(model.wv[corpus.words], np.float32)
