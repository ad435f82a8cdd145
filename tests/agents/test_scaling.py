import pytest
import torch

from qrl.agents.scaling import Scaling
from qrl.common.errors import ConfigError


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
    plain = Scaling.fit(torch.randn(50, 3), standardize=True)
    assert plain.with_fourier(0, 1, 0) is plain
    assert plain.output_dim == 3
    scaling, again, other = (plain.with_fourier(4000, 2, seed) for seed in (7, 7, 8))
    assert scaling.frequencies is not None
    assert again.frequencies is not None
    assert other.frequencies is not None
    assert torch.equal(scaling.frequencies, again.frequencies)
    assert not torch.equal(scaling.frequencies, other.frequencies)
    assert (scaling.frequencies.std() * 3**0.5).item() == pytest.approx(2, rel=0.02)
    rows = torch.randn(2, 3)
    assert torch.equal(Scaling.from_tensors(scaling.tensors())(rows), scaling(rows))
    assert scaling(rows).shape == (2, scaling.output_dim)


@pytest.mark.parametrize("features", [1, 2, 100])
def test_phases_have_the_given_deviation_whatever_the_number_of_features(features: int) -> None:
    rows = torch.cat([torch.randn(500, features), torch.ones(500, 5)], -1)  # constant features do not count
    scaling = Scaling.fit(rows, standardize=True).with_fourier(1000, 4, 0)
    phases = ((rows - scaling.mean) * scaling.scale) @ scaling.frequencies
    assert phases.std().item() == pytest.approx(4, rel=0.1)


def test_frequencies_of_some_columns() -> None:
    plain = Scaling.fit(torch.randn(50, 3), standardize=True)
    some, every = plain.with_fourier(4, 2, seed=7, columns=(0, 2)), plain.with_fourier(4, 2, seed=7)
    assert some.frequencies is not None
    assert every.frequencies is not None
    # The phases of two features have the same deviation as those of three.
    torch.testing.assert_close(some.frequencies[[0, 2]], every.frequencies[[0, 2]] * 1.5**0.5)
    assert (some.frequencies[1] == 0).all()
    with pytest.raises(ConfigError, match=r"learner\.fourier_columns: there is no column 3; observations have 3"):
        plain.with_fourier(4, 2, seed=7, columns=(3,))
