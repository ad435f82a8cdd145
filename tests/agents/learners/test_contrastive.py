import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from qrl import QModelSpec
from qrl.agents.errors import LearnerError
from qrl.agents.learners import contrastive
from qrl.agents.learners.cmd import CmdLearner
from qrl.agents.learners.contrastive import check_memory, info_nce
from qrl.agents.learners.goal_sampler import Batch
from qrl.agents.learners.settings import CmdSettings
from tests.agents.learners import naive_objectives
from tests.agents.learners.small_learners import SHORT, make_learner, traps
from tests.agents.learners.tables import Table, ids
from tests.q_models import small_model


@st.composite
def energies(draw: st.DrawFn) -> torch.Tensor:
    size = draw(st.integers(1, 6))
    row = st.lists(st.floats(-20, 20), min_size=size, max_size=size)
    return torch.tensor(draw(st.lists(row, min_size=size, max_size=size)), dtype=torch.float64)


def test_info_nce_by_hand() -> None:
    p = torch.tensor([[0.0, math.log(3)], [math.log(2), math.log(5)]])
    rows = math.log(1 + 1 / 3) + math.log(1 / 2 + 1 / 5)
    columns = math.log(1 + 1 / 2) + math.log(1 / 3 + 1 / 5)
    assert info_nce(p).item() == pytest.approx(math.log(5) / 2 + (rows + columns) / 4)


@given(energies(), st.floats(-100, 100), st.randoms(use_true_random=False))
def test_properties_of_info_nce(p: torch.Tensor, constant: float, random: object) -> None:
    loss = info_nce(p)
    torch.testing.assert_close(loss, naive_objectives.info_nce([list(row) for row in p]))
    torch.testing.assert_close(info_nce(p + constant), loss)
    torch.testing.assert_close(info_nce(p.T), loss)
    order = list(range(len(p)))
    random.shuffle(order)  # type: ignore[attr-defined]
    torch.testing.assert_close(info_nce(p[order][:, order]), loss)
    assert loss >= -1e-9  # minus a mean log-probability


def test_info_nce_of_indistinguishable_pairs() -> None:
    assert info_nce(torch.full((7, 7), 3.0)).item() == pytest.approx(math.log(7))


def test_info_nce_is_finite_for_huge_energies() -> None:
    p = torch.tensor([[1e6, 0.0], [0.0, -1e6]], requires_grad=True)
    loss = info_nce(p)
    loss.backward()
    assert loss.item() == pytest.approx(1e6 / 2)
    assert p.grad is not None
    assert p.grad.isfinite().all()


def test_energies_by_hand() -> None:
    """p_ij = d(x_i, y_j) in nats - c(y_j), with the potential of the goal's own action."""
    dataset = traps()
    spec = QModelSpec(1, 4, 0.5)
    states = len(dataset.observations)
    model = Table(spec, states)
    learner = CmdLearner(model, ids(states), dataset, CmdSettings(discount=0.5, batch_size=2), seed=0)
    potential = learner.potential = torch.nn.Linear(1, 4, bias=False)  # type: ignore[assignment]
    with torch.no_grad():
        potential.weight.copy_(torch.tensor([[1.0], [2.0], [3.0], [4.0]]))
        model.logits[0, 1, 5, 3] = -math.log(3)  # D = 1 / 4: two steps, and one elsewhere
    batch = Batch(*map(torch.tensor, ([0, 2], [1, 0], [0, 0], [5, 7], [3, 1], [1.0, 1.0])))
    s, g = batch.states, batch.goals
    distances = learner.all_distances(learner.model.encode(ids(states)), s, g, batch)
    torch.testing.assert_close(distances, torch.tensor([[2.0, 1.0], [1.0, 1.0]]))
    potentials = torch.tensor([4.0 * 5, 2.0 * 7])
    torch.testing.assert_close(learner.energies(distances, batch), math.log(2) * distances - potentials)


def test_the_potential_depends_on_the_seed_alone() -> None:
    settings = CmdSettings(**SHORT)
    torch.manual_seed(5)
    first = make_learner(CmdLearner, settings).potential.state_dict()
    again = make_learner(CmdLearner, settings, model="mrn-fixed").potential.state_dict()
    other = make_learner(CmdLearner, settings, seed=4).potential.state_dict()
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert any(not torch.equal(first[key], other[key]) for key in first)


def test_a_batch_that_does_not_fit_into_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model("iqe-sum", latent_size=16).train()
    monkeypatch.setattr(contrastive, "_free_memory", lambda: 2**20)
    with pytest.raises(
        LearnerError, match=r"learner\.batch_size: .* 10,000 x 10,000 pairs .* at most ([\d,]+) fit"
    ) as error:
        check_memory(model, 10_000)
    most = int(str(error.value).split()[-2].replace(",", ""))
    check_memory(model, most)
    with pytest.raises(LearnerError):
        check_memory(model, most + 1)
    assert model.training
    monkeypatch.setattr(contrastive, "_free_memory", lambda: None)  # unknown
    check_memory(model, 10**6)


def test_the_memory_of_a_pair_is_that_of_its_saved_tensors() -> None:
    """A larger latent takes more, in proportion."""
    small, large = (contrastive._bytes_per_pair(small_model("iqe-sum", latent_size=size)) for size in (64, 256))
    assert 64 * 4 < small < 64 * 100
    assert large / small == pytest.approx(4, rel=0.3)


def test_memory_that_caches_files_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    table = "MemTotal:       1000 kB\nMemFree:          10 kB\nMemAvailable:    500 kB\nCached:          480 kB\n"
    monkeypatch.setattr(Path, "read_text", lambda path: table)
    assert contrastive._free_memory() == 500 * 1024
    monkeypatch.setattr(Path, "read_text", lambda path: "")
    assert contrastive._free_memory() is None
