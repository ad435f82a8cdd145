import json

import numpy as np

from qrl.agents.learners.sampler import Sampler


def draw(rng: np.random.Generator) -> list[int]:
    return list(rng.integers(2**31, size=50))


def test_the_state_is_json_and_continues_the_sequence() -> None:
    sampler = Sampler(seed=1)
    sampler.rng.integers(10, size=7)
    state = json.loads(json.dumps(sampler.state_dict()))
    expected = sampler.rng.integers(2**31, size=50).tolist()
    other = Sampler(seed=2)
    other.load_state_dict(state)
    assert other.rng.integers(2**31, size=50).tolist() == expected
    assert sampler.rng.integers(2**31, size=50).tolist() != expected


def test_a_generator_of_its_own_disturbs_no_other() -> None:
    plain, sampler = Sampler(seed=1), Sampler(seed=1)
    extra = sampler.generator("extra")
    assert sampler.generator("extra") is extra
    first = draw(extra)
    assert draw(sampler.rng) == draw(plain.rng)
    assert first == draw(Sampler(seed=1).generator("extra"))
    assert first != draw(Sampler(seed=1).generator("other"))
    assert first != draw(Sampler(seed=2).generator("extra"))
    assert first != draw(Sampler(seed=1).rng)


def test_all_generators_are_restored() -> None:
    sampler, other = Sampler(seed=1), Sampler(seed=2)
    for each in (sampler, other):
        draw(each.generator("extra"))
        draw(each.rng)
    state = json.loads(json.dumps(sampler.state_dict()))
    expected = draw(sampler.rng), draw(sampler.generator("extra"))
    other.load_state_dict(state)
    assert (draw(other.rng), draw(other.generator("extra"))) == expected


def test_without_others_the_state_is_that_of_the_one_generator() -> None:
    assert Sampler(seed=7).state_dict() == np.random.default_rng(7).bit_generator.state
