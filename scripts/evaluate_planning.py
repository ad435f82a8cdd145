"""Plan with a trained agent and score it: success, causes of failure, and its distances against the exact ones.

Without a world there is nothing to plan and nothing exact: held-out trajectories then validate the agent. The results
of a run on its own data and world also go into its TensorBoard or other trackers.
"""

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qrl.common.commands import Parser, command, new_parser
from qrl.common.completion import completed_by
from qrl.common.errors import ConfigError

if TYPE_CHECKING:
    from qrl.agents.evaluation.evaluator import Evaluator, Subject
    from qrl.agents.evaluation.results import Evaluation


def _parser(argv: Sequence[str] | None) -> Parser:
    from qrl.agents.evaluation.results import PICTURES, REFERENCES, VALIDATION_PICTURES, keys_help
    from qrl.scripts._planning import add_planning_arguments, grid_cell, run_folders

    parser = new_parser("evaluate-planning", __doc__)
    add = parser.add_argument
    completed_by(add("run", metavar="RUN", nargs="?", help="folder of a training run, finished or not"), run_folders)
    add("--checkpoint", metavar="FILE", help="a checkpoint that the run kept, instead of its last one")
    add("--reference", choices=list(REFERENCES), help="evaluate this instead of RUN; needs --dataset")
    add("--dataset", metavar="FILE", help="dataset to evaluate on, instead of the run's own")
    add(
        "--world",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="evaluate in the world of the data with another parameter, such as split=test; may be repeated",
    )
    add("--env", metavar="ID", help="plan in this gymnasium environment (ID or module:ID), by the paper's protocol")
    drawn = f"{', '.join(PICTURES)} there, or without a world {', '.join(VALIDATION_PICTURES)}"
    add("--pictures", metavar="DIR", help=f"draw {drawn}, each as PNG, PDF and SVG")
    add("--gif", metavar="FILE", help="one task as a GIF")
    add("--start", type=grid_cell, metavar="X,Y", help="start cell of the GIF (default: the farthest from the goal)")
    add("--json", metavar="FILE", help="write all results, with the keys below")
    add_planning_arguments(parser, argv)
    parser.epilog = f"keys of the JSON (null: does not exist):\n{keys_help()}"
    return parser


@command
def main(argv: Sequence[str] | None = None) -> None:
    args = _parser(argv).parse_args(argv)
    _check_arguments(args)

    # Imported only now, so that --help answers without torch.
    from qrl.agents.evaluation.evaluator import Evaluator
    from qrl.agents.evaluation.tables import results_text
    from qrl.agents.evaluation.trained_agent import TrainedAgent
    from qrl.agents.planning.rollouts import open_env
    from qrl.envs.dataset import Dataset

    trained = None
    if args.reference is None:
        trained = TrainedAgent.open(args.run, args.checkpoint, args.dataset, args.seed, args.world)
    dataset = trained.dataset if trained else Dataset.load(args.dataset)
    frames = {} if args.gif is None else {"render_mode": "rgb_array"}
    env = None if args.env is None else open_env(args.env, **frames)
    options = args.protocol, args.episodes, args.seed, env
    evaluator = trained.evaluator(*options) if trained else Evaluator(dataset, *options)
    _check_drawable(args, evaluator, trained is not None and trained.held_out is not None)
    subject = trained.subject(evaluator) if trained else evaluator.reference(args.reference)
    evaluation = trained.evaluate(evaluator, subject) if trained else evaluator.evaluate(subject)
    for notice in evaluation.notices:
        print(f"note: {notice}", file=sys.stderr)
    print(results_text([evaluation.results, *evaluation.references]))
    _write(args, evaluator, subject, evaluation)
    if trained and args.dataset is args.env is args.checkpoint is None and not args.world:
        trained.log(evaluation.results)


def _check_arguments(args: Namespace) -> None:
    from qrl.agents.evaluation.results import PICTURES, VALIDATION_PICTURES
    from qrl.common.files import FIGURE_FORMATS, check_output
    from qrl.scripts._planning import check_planning_arguments

    check_planning_arguments(args)
    if (args.run is None) == (args.reference is None):
        raise ConfigError("name either the folder of a training run or --reference")
    if args.reference is not None and args.dataset is None:
        raise ConfigError("--reference needs the data of its world: name it with --dataset")
    if args.reference is not None and (args.checkpoint is not None or args.world):
        raise ConfigError("--checkpoint and --world belong to a training run: leave them out with --reference")
    if args.start is not None and args.gif is None:
        raise ConfigError("--start applies only to the GIF; add --gif")
    if args.goal is not None and args.gif is None and args.pictures is None:
        raise ConfigError("--goal applies only to pictures; add --pictures or --gif")
    if args.json is not None:
        check_output(args.json, ".json", args.force)
    if args.gif is not None:
        check_output(args.gif, ".gif", args.force)
    if args.pictures is not None:
        for name in (f"{name}{suffix}" for name in (*PICTURES, *VALIDATION_PICTURES) for suffix in FIGURE_FORMATS):
            check_output(Path(args.pictures) / name, FIGURE_FORMATS, args.force)


def _check_drawable(args: Namespace, evaluator: "Evaluator", validated: bool) -> None:
    """Refuse pictures that cannot be drawn before anything is computed."""
    from qrl.agents.evaluation.single_task import check_play, goal_state

    if args.gif is not None:
        check_play(evaluator, args.start, args.goal)
    elif args.goal is not None:
        goal_state(evaluator, args.goal)
    if args.pictures is not None and evaluator.truth is None and not validated:
        raise ConfigError(
            "--pictures: there is nothing to draw, because the dataset has no world and nothing is held out; leave it "
            "out"
        )


def _write(args: Namespace, evaluator: "Evaluator", subject: "Subject", evaluation: "Evaluation") -> None:
    if args.json is not None:
        from qrl.common.files import atomic_write

        with atomic_write(args.json) as file:
            file.write(evaluation.to_json().encode())
        print(f"wrote {args.json}")
    if args.pictures is not None:
        from qrl.agents.evaluation.pictures import evaluation_pictures

        for path in evaluation_pictures(evaluator, subject, evaluation, Path(args.pictures), args.goal):
            print(f"wrote {path}")
    if args.gif is not None:
        from qrl.agents.evaluation.single_task import play_task
        from qrl.agents.planning.animation import save_gif

        episode = play_task(evaluator, subject, args.start, args.goal)
        save_gif(episode, args.gif)
        print(f"wrote {args.gif}: {episode.cause or 'success'} after {len(episode.actions)} steps")
