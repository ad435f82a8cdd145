import pytest
import torch

from qrl.agents.scaling import Scaling


def test_scaling() -> None:
    rows = torch.tensor([[1.0, 5.0, 0.1], [3.0, 5.0, 0.1], [5.0, 5.0, 0.1]])
    scaled = Scaling.fit(rows, standardize=True)(rows)
    assert scaled[:, 0].tolist() == pytest.approx([-(1.5**0.5), 0, 1.5**0.5])
    assert (scaled[:, 1:] == 0).all()  # constant features carry no information
    assert torch.equal(Scaling.fit(rows, standardize=False)(rows), rows)


def test_a_checkpoint_holds_the_scaling() -> None:
    scaling = Scaling.fit(torch.randn(5, 3), standardize=True)
    restored = Scaling.from_tensors({"model.weight": torch.zeros(1), **scaling.tensors()})
    assert torch.equal(restored.mean, scaling.mean)
    assert torch.equal(restored.scale, scaling.scale)


def test_fourier_features_by_hand() -> None:
    rows = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
    scaling = Scaling(torch.tensor([1.0, 1.0]), torch.tensor([1.0, 0.5]), torch.tensor([[0.5], [2.0]]))
    phases = torch.tensor([-0.5, 0.5 + 2.0])
    expected = torch.stack([torch.tensor([-1.0, 1.0]), torch.tensor([0.0, 1.0]), phases.sin(), phases.cos()], -1)
    torch.testing.assert_close(scaling(rows), expected)
    assert (scaling.observation_dim, scaling.output_dim) == (2, 4)


def test_frequencies_depend_on_the_seed_alone_and_are_saved() -> None:
    rows = torch.randn(50, 3)
    plain = Scaling.fit(rows, standardize=True)
    assert plain.with_fourier(rows, 0, 1, 0) is plain
    assert plain.output_dim == 3
    scaling, again, other = (plain.with_fourier(rows, 4000, 2, seed) for seed in (7, 7, 8))
    assert scaling.frequencies is not None
    assert again.frequencies is not None
    assert other.frequencies is not None
    assert torch.equal(scaling.frequencies, again.frequencies)
    assert not torch.equal(scaling.frequencies, other.frequencies)
    assert torch.equal(Scaling.from_tensors(scaling.tensors())(rows), scaling(rows))
    assert scaling(rows).shape == (50, scaling.output_dim)


def test_each_frequency_is_of_one_feature_that_has_more_than_two_values() -> None:
    switches = torch.tensor([[0.0, 1.0]] * 25 + [[5.0, 1.0]] * 25)
    rows = torch.cat([torch.randn(50, 1), switches, torch.arange(150.0).view(50, 3)], 1)
    plain = Scaling.fit(rows, standardize=True)
    frequencies = plain.with_fourier(rows, 4002, 2, 0).frequencies
    assert frequencies is not None
    assert (frequencies != 0).sum(0).tolist() == [1] * 4002
    counts = (frequencies != 0).sum(1).tolist()
    assert counts[1:3] == [0, 0]
    assert sorted(counts) == [0, 0, 1000, 1000, 1001, 1001]
    assert frequencies.sum(0).std().item() == pytest.approx(2, rel=0.05)
    assert plain.with_fourier(switches.repeat(1, 3), 8, 2, 0) is plain  # nothing but switches
