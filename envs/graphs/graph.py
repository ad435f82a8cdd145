"""Directed graphs, and SNAP edge lists: comment lines, then two node ids per line, plain or gzipped."""

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from qrl.common.files import regular_file
from qrl.envs.errors import DatasetError

CHUNK_BYTES = 2**24  # text parsed together
MAX_LINE_BYTES = 2**16
MAX_EXPANSION = 100  # text of node ids compresses to a tenth, zeros to a thousandth
MAX_ID = 2**31 - 1

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Graph:
    """Edges of positive length between nodes 0, 1, ...; `names` are the original ids of the nodes."""

    edges: csr_array
    names: Ids
    self_loops: int = 0  # number of edges dropped because they do not affect distances
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
        """Build a graph of unit-length edges between arbitrary ids; self-loops and repeated edges are dropped."""
        loops = sources == targets
        names, nodes = np.unique(np.concatenate([sources, targets]), return_inverse=True)
        if not len(names):
            raise DatasetError("the graph has no edges")
        source, target = nodes.reshape(2, -1)[:, ~loops]
        count = len(names)
        edges = coo_array((np.ones(len(source), np.int32), (source, target)), shape=(count, count)).tocsr()
        edges.sum_duplicates()
        repeated = len(source) - edges.nnz
        edges.data = np.ones(edges.nnz, np.int8)  # small: every length is 1
        if not edges.nnz:
            raise DatasetError("the graph has only self-loops")
        return cls(edges, names, int(loops.sum()), repeated)


def read_edge_list(path: str | Path) -> Graph:
    """Read a graph. Memory is proportional to the number of edges, not to the size of the text."""
    path = regular_file(path, DatasetError)
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if zipped else path.open("rb") as file:
            limit = MAX_EXPANSION * path.stat().st_size + CHUNK_BYTES if zipped else None
            chunks = list(_parse(path, file, limit))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DatasetError(f"{path} is damaged or truncated ({error}); copy it again") from error
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}") from error
    sources, targets = (np.concatenate([chunk[side] for chunk in chunks] or [np.empty(0, np.int64)]) for side in (0, 1))
    try:
        return Graph.from_edges(sources, targets)
    except DatasetError as error:
        raise DatasetError(f"{path}: {error}") from error


def _parse(path: Path, file: gzip.GzipFile | io.BufferedReader, limit: int | None) -> Iterator[NDArray[np.int64]]:
    """Yield the edges, (2, edges), of each chunk of whole lines; `limit`: bytes beyond which the text is refused."""
    line, rest = 1, b""
    while True:
        chunk = file.read(CHUNK_BYTES)
        if limit is not None and file.tell() > limit:
            raise DatasetError(f"{path} expands to more than {MAX_EXPANSION} times its size, as no edge list does")
        text = rest + chunk
        if chunk:
            end = text.rfind(b"\n") + 1
            text, rest = text[:end], text[end:]
            if len(rest) > MAX_LINE_BYTES:
                long_line = line + text.count(b"\n")
                raise DatasetError(f"{path}, line {long_line}: longer than {MAX_LINE_BYTES:,} bytes; not an edge list")
        if text:
            yield _parse_lines(path, text, line)
            line += text.count(b"\n")
        if not chunk:
            return


class _Tokens(NamedTuple):
    line: Ids  # line of each token, counted from 0
    value: Ids
    length: Ids


def _parse_lines(path: Path, text: bytes, first_line: int) -> NDArray[np.int64]:
    if b"#" in text:
        # Comments become empty lines, so that line numbers are preserved.
        lines = text.split(b"\n")
        text = b"\n".join(b"" if line.lstrip().startswith(b"#") else line for line in lines)
    symbols = np.frombuffer(text, np.uint8)
    digit = (symbols >= ord("0")) & (symbols <= ord("9"))
    blank = (symbols == ord(" ")) | (symbols == ord("\t")) | (symbols == ord("\r"))
    newline = symbols == ord("\n")
    invalid = np.flatnonzero(~(digit | blank | newline))
    if len(invalid):
        _raise_bad_line(path, text, int(newline[: invalid[0]].sum()), first_line)
    tokens = _tokens(symbols, digit, newline)
    per_line = np.bincount(tokens.line, minlength=1)
    miscounted = np.flatnonzero((per_line != 0) & (per_line != 2))
    too_large = np.flatnonzero((tokens.length > len(str(MAX_ID))) | (tokens.value > MAX_ID))
    bad_lines = [*miscounted[:1], *tokens.line[too_large[:1]]]
    if bad_lines:
        _raise_bad_line(path, text, int(min(bad_lines)), first_line)
    return np.ascontiguousarray(tokens.value.reshape(-1, 2).T)


def _tokens(symbols: NDArray[np.uint8], digit: NDArray[np.bool_], newline: NDArray[np.bool_]) -> _Tokens:
    """The numbers in a text, vectorized over tokens."""
    before, after = np.roll(digit, 1), np.roll(digit, -1)
    before[:1] = after[-1:] = False
    starts, ends = np.flatnonzero(digit & ~before), np.flatnonzero(digit & ~after)
    if not len(starts):
        empty = np.empty(0, np.int64)
        return _Tokens(empty, empty, empty)
    length = ends - starts + 1
    values = np.zeros(len(starts), np.int64)
    for power in range(min(int(length.max()), len(str(MAX_ID)))):
        has_digit = length > power
        values[has_digit] += (symbols[ends[has_digit] - power].astype(np.int64) - ord("0")) * 10**power
    line = np.searchsorted(np.flatnonzero(newline), starts)
    return _Tokens(line, values, length)


def _raise_bad_line(path: Path, text: bytes, line: int, first_line: int) -> NoReturn:
    excerpt = text.split(b"\n")[line][:60].decode("utf-8", "replace").strip()
    raise DatasetError(
        f"{path}, line {first_line + line}: {excerpt!r} is not an edge; a line must have two node ids, "
        f"integers from 0 to {MAX_ID}, or be a comment that starts with #"
    )
