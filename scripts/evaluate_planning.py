"""Plan with a trained agent and score it: success, causes of failure, and its distances against the truth.

The results of a run on its own data and world also go into its TensorBoard.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qrl.agents.evaluation.results import PICTURES, REFERENCES, Evaluation, keys_help
from qrl.common.commands import command, new_parser
from qrl.common.errors import ConfigError
from qrl.common.files import atomic_write, check_output
from qrl.scripts._planning import add_planning_arguments, cell, prepare

if TYPE_CHECKING:
    from qrl.agents.evaluation.evaluator import Evaluator, Subject


def _parser() -> ArgumentParser:
    parser = new_parser("evaluate-planning", __doc__)
    add = parser.add_argument
    add("run", metavar="RUN", nargs="?", help="folder of a training run, finished or not")
    add("--checkpoint", metavar="FILE", help="a checkpoint of the run, in place of its last one")
    add("--reference", choices=list(REFERENCES), help="evaluate this in place of RUN; needs --dataset")
    add("--dataset", metavar="FILE", help="dataset to evaluate on, in place of the run's own")
    add("--env", metavar="ID", help="plan in this gymnasium environment (ID or module:ID), by the paper's protocol")
    add("--pictures", metavar="DIR", help=f"draw {', '.join(PICTURES)} there")
    add("--gif", metavar="FILE", help="one task as a GIF")
    add("--start", type=cell, metavar="X,Y", help="start cell of the GIF (default: the farthest from the goal)")
    add("--json", metavar="FILE", help="write all results, with the keys below")
    add_planning_arguments(parser)
    parser.epilog = f"keys of the JSON (null: does not exist):\n{keys_help()}"
    return parser


@command
def main(argv: Sequence[str] | None = None) -> None:
    args = _parser().parse_args(argv)
    _check_arguments(args)
    prepare(args)

    # Imported only now, so that --help answers without torch.
    from qrl.agents.evaluation.evaluator import Evaluator
    from qrl.agents.evaluation.summary import align, by_distance, text_table
    from qrl.agents.planning.rollouts import open_env
    from qrl.agents.runs.trained_run import TrainedRun, evaluation_of
    from qrl.envs.dataset import Dataset

    trained = None
    if args.reference is None:
        trained = TrainedRun.open(args.run, args.checkpoint, args.dataset, args.seed)
    dataset = trained.dataset if trained else Dataset.load(args.dataset)
    frames = {} if args.gif is None else {"render_mode": "rgb_array"}
    env = None if args.env is None else open_env(args.env, **frames)
    evaluator = Evaluator(dataset, args.protocol, args.episodes, args.seed, env)
    if args.gif is not None:
        evaluator.check_play(args.start, args.goal)
    elif args.goal is not None:
        evaluator.goal_state(args.goal)
    subject = evaluator.agent(trained.agent, trained.name) if trained else evaluator.reference(args.reference)
    results = evaluator.score(subject)
    beside = [evaluator.score(other) for other in evaluator.references() if other.name != args.reference]
    evaluation = evaluation_of(evaluator, results, trained, beside)
    for notice in evaluation.notices:
        print(f"note: {notice}", file=sys.stderr)
    print(text_table([results, *beside]))
    rows = by_distance(results)
    if rows:
        print(f"\n{align(rows)}")
    _write(args, evaluator, subject, evaluation)
    if trained and args.dataset is args.env is args.checkpoint is None and evaluator.protocol is not None:
        trained.log(results)


def _check_arguments(args: Namespace) -> None:
    if (args.run is None) == (args.reference is None):
        raise ConfigError("name either the folder of a training run or --reference")
    if args.reference is not None and args.dataset is None:
        raise ConfigError("--reference needs the data of its world: name it with --dataset")
    if args.reference is not None and args.checkpoint is not None:
        raise ConfigError("--checkpoint belongs to a training run: leave it out with --reference")
    if args.start is not None and args.gif is None:
        raise ConfigError("--start is that of the GIF: add --gif")
    if args.goal is not None and args.gif is None and args.pictures is None:
        raise ConfigError("--goal is that of the pictures: add --pictures or --gif")
    if args.json is not None:
        check_output(args.json, ".json", args.force)
    if args.gif is not None:
        check_output(args.gif, ".gif", args.force)
    if args.pictures is not None:
        for name in PICTURES:
            check_output(Path(args.pictures) / name, ".png", args.force)


def _write(args: Namespace, evaluator: "Evaluator", subject: "Subject", evaluation: Evaluation) -> None:
    if args.json is not None:
        with atomic_write(args.json) as file:
            file.write(evaluation.model_dump_json(indent=2).encode())
        print(f"wrote {args.json}")
    if args.pictures is not None:
        from qrl.agents.evaluation.pictures import evaluation_pictures

        drawn = evaluation_pictures(evaluator, subject, evaluation, Path(args.pictures), args.goal)
        for path in drawn:
            print(f"wrote {path}")
        if not drawn:
            print("note: there is nothing to draw without a layout", file=sys.stderr)
    if args.gif is not None:
        from qrl.agents.planning.rollouts import save_gif

        episode = evaluator.play(subject.policy, args.start, args.goal)
        save_gif(episode, args.gif)
        print(f"wrote {args.gif}: {episode.cause or 'success'} after {len(episode.actions)} steps")
