"""A directed graph, and edge lists in the format of SNAP: comment lines, then two node ids a line, plain or gzipped."""

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from qrl.envs.errors import DatasetError

BLOCK = 2**24  # bytes of text that are parsed together
MAX_LINE = 2**16
MAX_ID = 2**31 - 1

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Graph:
    """Edges of positive length between nodes 0, 1, ...; `names` are the ids of the nodes where they come from."""

    edges: csr_array
    names: Ids
    self_loops: int = 0  # left out, because they change no distance
    repeated: int = 0  # likewise

    @property
    def num_nodes(self) -> int:
        return int(self.edges.shape[0])

    @property
    def num_edges(self) -> int:
        return int(self.edges.nnz)

    @cached_property
    def reversed(self) -> csr_array:
        return self.edges.T.tocsr()

    @classmethod
    def from_edges(cls, sources: Ids, targets: Ids) -> "Graph":
        """Edges of length 1 between any non-negative ids; self-loops and repetitions are left out and counted."""
        loops = sources == targets
        names, places = np.unique(np.concatenate([sources, targets]), return_inverse=True)
        if not len(names):
            raise DatasetError("the graph has no edges")
        source, target = places.reshape(2, -1)[:, ~loops]
        count = len(names)
        edges = coo_array((np.ones(len(source), np.int32), (source, target)), shape=(count, count)).tocsr()
        edges.sum_duplicates()
        repeated = len(source) - edges.nnz
        edges.data = np.ones(edges.nnz, np.int8)  # small, because only the places of the edges matter
        if not edges.nnz:
            raise DatasetError("the graph has no edges but self-loops")
        return cls(edges, names, int(loops.sum()), repeated)


def read_edge_list(path: str | Path) -> Graph:
    """Memory grows with the edges, not with the text."""
    path = Path(path)
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if zipped else path.open("rb") as file:
            parts = list(_parse(path, file))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DatasetError(f"{path} is damaged or cut off ({error}); copy it again") from error
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}") from error
    sources, targets = (np.concatenate([part[side] for part in parts] or [np.empty(0, np.int64)]) for side in (0, 1))
    try:
        return Graph.from_edges(sources, targets)
    except DatasetError as error:
        raise DatasetError(f"{path}: {error}") from error


def _parse(path: Path, file: gzip.GzipFile | io.BufferedReader) -> Iterator[NDArray[np.int64]]:
    """(2, edges) of each block of whole lines."""
    line, rest = 1, b""
    while True:
        block = file.read(BLOCK)
        text = rest + block
        if block:
            end = text.rfind(b"\n") + 1
            text, rest = text[:end], text[end:]
            if len(rest) > MAX_LINE:
                place = line + text.count(b"\n")
                raise DatasetError(f"{path}, line {place}: longer than {MAX_LINE:,} bytes; not an edge list")
        if text:
            yield _parse_lines(path, text, line)
            line += text.count(b"\n")
        if not block:
            return


class _Tokens(NamedTuple):
    line: Ids  # of each token, from 0
    value: Ids
    length: Ids


def _parse_lines(path: Path, text: bytes, first_line: int) -> NDArray[np.int64]:
    if b"#" in text:
        # Comments become empty lines, so that lines keep their numbers.
        lines = text.split(b"\n")
        text = b"\n".join(b"" if line.lstrip().startswith(b"#") else line for line in lines)
    symbols = np.frombuffer(text, np.uint8)
    digit = (symbols >= ord("0")) & (symbols <= ord("9"))
    blank = (symbols == ord(" ")) | (symbols == ord("\t")) | (symbols == ord("\r"))
    newline = symbols == ord("\n")
    strange = np.flatnonzero(~(digit | blank | newline))
    if len(strange):
        _refuse(path, text, int(newline[: strange[0]].sum()), first_line)
    tokens = _tokens(symbols, digit, newline)
    per_line = np.bincount(tokens.line, minlength=1)
    wrong = np.flatnonzero((per_line != 0) & (per_line != 2))
    long = np.flatnonzero((tokens.length > len(str(MAX_ID))) | (tokens.value > MAX_ID))
    bad = [*wrong[:1], *tokens.line[long[:1]]]
    if bad:
        _refuse(path, text, int(min(bad)), first_line)
    return np.ascontiguousarray(tokens.value.reshape(-1, 2).T)


def _tokens(symbols: NDArray[np.uint8], digit: NDArray[np.bool_], newline: NDArray[np.bool_]) -> _Tokens:
    """The numbers of a text, without a loop over them."""
    before, after = np.roll(digit, 1), np.roll(digit, -1)
    before[:1] = after[-1:] = False
    starts, ends = np.flatnonzero(digit & ~before), np.flatnonzero(digit & ~after)
    if not len(starts):
        empty = np.empty(0, np.int64)
        return _Tokens(empty, empty, empty)
    length = ends - starts + 1
    values = np.zeros(len(starts), np.int64)
    for place in range(min(int(length.max()), len(str(MAX_ID)))):  # units, tens, hundreds, ...
        has = length > place
        values[has] += (symbols[ends[has] - place].astype(np.int64) - ord("0")) * 10**place
    line = np.searchsorted(np.flatnonzero(newline), starts)
    return _Tokens(line, values, length)


def _refuse(path: Path, text: bytes, line: int, first_line: int) -> None:
    shown = text.split(b"\n")[line][:60].decode("utf-8", "replace").strip()
    raise DatasetError(
        f"{path}, line {first_line + line}: {shown!r} is not an edge; a line is two node ids, "
        f"whole numbers from 0 to {MAX_ID}, or a comment that begins with #"
    )
