import json

from qrl.agents.learners.sampler import Sampler


def test_the_state_is_json_and_continues_the_sequence() -> None:
    sampler = Sampler(seed=1)
    sampler.rng.integers(10, size=7)
    state = json.loads(json.dumps(sampler.state_dict()))
    expected = sampler.rng.integers(2**31, size=50).tolist()
    other = Sampler(seed=2)
    other.load_state_dict(state)
    assert other.rng.integers(2**31, size=50).tolist() == expected
    assert sampler.rng.integers(2**31, size=50).tolist() != expected
