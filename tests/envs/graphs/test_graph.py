"""Edge lists: the resulting graphs, and errors that name the file and line."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrl.envs.errors import DatasetError
from qrl.envs.graphs import graph as module
from qrl.envs.graphs.graph import Graph, read_edge_list

EDGES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=40)


def edges_of(graph: Graph) -> set[tuple[int, int]]:
    source, target = graph.edges.nonzero()
    return set(zip(graph.names[source].tolist(), graph.names[target].tolist(), strict=True))


TEXT = "# a comment\n# FromNodeId\tToNodeId\n7\t3\n3 7\r\n\n  0\t 1234567 \n7\t3\n5\t5\n#3 4\n3\t0"


@pytest.mark.parametrize("zipped", [False, True])
def test_by_hand(zipped: bool, tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    path.write_bytes(gzip.compress(TEXT.encode()) if zipped else TEXT.encode())
    graph = read_edge_list(path)
    assert graph.names.tolist() == [0, 3, 5, 7, 1234567]
    assert edges_of(graph) == {(7, 3), (3, 7), (0, 1234567), (3, 0)}
    assert (graph.num_nodes, graph.num_edges, graph.self_loops, graph.repeated) == (5, 4, 1, 1)
    assert np.array_equal(graph.reversed.toarray(), graph.edges.toarray().T)


@given(edges=EDGES, chunk=st.integers(1, 30))
def test_any_edge_list_in_any_chunks(
    edges: list[tuple[int, int]], chunk: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("graph") / "edges.txt"
    edges = [*edges, (0, 1)]
    path.write_text("\n".join(f"{source}\t{target}" for source, target in edges))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK_BYTES", chunk)
        graph = read_edge_list(path)
    assert edges_of(graph) == {(source, target) for source, target in edges if source != target}
    assert set(graph.names.tolist()) == {node for edge in edges for node in edge}
    assert graph.self_loops == sum(source == target for source, target in edges)
    assert graph.num_edges + graph.self_loops + graph.repeated == len(edges)


@pytest.mark.parametrize(
    ("text", "line", "excerpt"),
    [
        ("1 2\n3\n", 2, "3"),
        ("1 2\n# c\n3 4 5\n", 3, "3 4 5"),
        ("1 2\n\n-3 4\n", 3, "-3 4"),
        ("1 2.5\n", 1, "1 2.5"),
        ("1 2\n1,2\n", 2, "1,2"),
        ("1 2\nfrom to\n1 2\n", 2, "from to"),
        ("1 99999999999999999999999\n", 1, "1 9999"),
        ("1 2\n1 2147483648", 2, "2147483648"),
        ("1 2\n3\n4 5 6\n", 2, "3"),  # the total is two numbers per line
    ],
)
def test_a_malformed_line_is_named(text: str, line: int, excerpt: str, tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    path.write_text(text)
    with pytest.raises(DatasetError, match=rf"edges\.txt, line {line}: .*{excerpt}"):
        read_edge_list(path)


def test_lines_are_counted_across_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_BYTES", 64)
    path = tmp_path / "edges.txt"
    path.write_text("1 2\n" * 1000 + "1 x\n")
    with pytest.raises(DatasetError, match="line 1001"):
        read_edge_list(path)
    path.write_text("1 2\n" + "1" * 100_000)
    with pytest.raises(DatasetError, match="line 2: longer"):
        read_edge_list(path)


def test_files_without_a_graph_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    for text in ("", "# only a comment\n", "\n\n"):
        path.write_text(text)
        with pytest.raises(DatasetError, match=r"edges\.txt: the graph has no edges"):
            read_edge_list(path)
    path.write_bytes(gzip.compress(b"1 2\n" * 10_000)[:-20])
    with pytest.raises(DatasetError, match="truncated"):
        read_edge_list(path)
    with pytest.raises(DatasetError, match="cannot be read"):
        read_edge_list(tmp_path / "nowhere.txt")


def test_only_self_loops() -> None:
    with pytest.raises(DatasetError, match="only self-loops"):
        Graph.from_edges(np.array([4, 4]), np.array([4, 4]))


def test_a_compressed_file_may_not_expand_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qrl.envs.graphs.graph.CHUNK_BYTES", 2**16)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"1 2\n" + b"\n" * 2**22))
    with pytest.raises(DatasetError, match=r"bomb\.gz expands to more than 100 times its size"):
        read_edge_list(path)
