"""The arguments that evaluate-planning and compare-agents share."""

from argparse import Namespace

import pytest

from qrl.common.commands import new_parser
from qrl.common.errors import ConfigError
from qrl.scripts._planning import add_planning_arguments, check_planning_arguments, grid_cell


def parsed(*arguments: str) -> Namespace:
    parser = new_parser("toy", None)
    add_planning_arguments(parser, arguments)
    return parser.parse_args(arguments)


def test_a_cell_is_two_integers() -> None:
    assert grid_cell("3,14") == (3, 14)
    assert parsed("--goal", "3, 4").goal == (3, 4)


@pytest.mark.parametrize("text", ["5", "1,2,3", "a,b", "1.5,2", ",", ""])
def test_other_cells_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        parsed("--goal", text)
    assert exit_.value.code == 2
    assert f"argument --goal: invalid cell {text!r}: expected X,Y, such as 3,4" in capsys.readouterr().err


def test_defaults_are_accepted() -> None:
    args = parsed()
    check_planning_arguments(args)
    assert (args.protocol, args.episodes, args.seed, args.goal, args.force) == (None, None, 0, None, False)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--seed must be at least 0 \(got -1\)"):
        check_planning_arguments(parsed("--seed", "-1"))
