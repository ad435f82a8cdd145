/** Greedy walks: the same ends as those of `TablePolicy.walk` in Python. */

import { greedyAction } from "./data.js";

/** What becomes of the greedy walk that starts in a state. */
export const REACHES = {
  optimal: "optimal",
  detour: "detour",
  lost: "lost",
  loop: "loop",
  blocked: "blocked",
  none: "none",
};

/** Follow the greedy actions; `cause` is "" for a success, else "blocked", "loop" or "cap". */
export function walk(page, snapshot, start, goal) {
  const states = [start];
  const actions = [];
  const end = (cause, steps) => ({ states, actions, cause, steps, success: cause === "", start, goal });
  for (let step = 1; step <= page.maxSteps; step++) {
    const state = states.at(-1);
    const action = greedyAction(page, snapshot, state, goal);
    const next = page.world.next(state, action);
    actions.push(action);
    states.push(next);
    if (next === goal) return end("", step);
    if (next === state) return end("blocked", page.maxSteps);
  }
  const visited = states.indexOf(states.at(-1)) < states.length - 1;
  return end(visited ? "loop" : "cap", page.maxSteps);
}

/** Of a walk that ends in a loop: the step that enters it, and its length. */
export function loopOf({ states }) {
  const seen = new Map();
  for (const [step, state] of states.entries()) {
    if (seen.has(state)) return { entry: seen.get(state), length: step - seen.get(state) };
    seen.set(state, step);
  }
  return null;
}

/** Steps of a walk worth watching: a loop is watched for two rounds, not up to the cap. */
export function shownSteps(path) {
  const loop = path.cause === "loop" ? loopOf(path) : null;
  return loop ? Math.min(path.actions.length, loop.entry + 2 * loop.length) : path.actions.length;
}

/** Whether an action lies on a shortest path; null where exact distances are unknown or infinite. */
export function isOptimal(page, state, goal, action) {
  if (!page.exact) return null;
  const distance = page.exact.distance(state, goal);
  return Number.isFinite(distance) ? page.exact.steps(state, goal, action) + 1 === distance : null;
}

function unreachable(page, state, goal) {
  return page.exact !== null && page.exact.distance(state, goal) === Infinity;
}

/** The first step of a walk that leaves the shortest paths, if there is one. */
export function firstMistake(page, path) {
  const step = path.actions.findIndex((action, i) => isOptimal(page, path.states[i], path.goal, action) === false);
  return step < 0 ? null : step;
}

/** For every state: what becomes of the greedy walk to the goal from there. */
export function fatesTo(page, snapshot, goal) {
  const { world, maxSteps } = page;
  const fates = new Array(world.states).fill(null);
  const left = new Int32Array(world.states); // steps to the goal of states that reach it
  for (let state = 0; state < world.states; state++) if (unreachable(page, state, goal)) fates[state] = REACHES.none;
  fates[goal] = REACHES.none;
  for (let start = 0; start < world.states; start++) {
    const trail = [];
    const onTrail = new Map();
    let state = start;
    while (fates[state] === null && !onTrail.has(state)) {
      onTrail.set(state, trail.length);
      trail.push(state);
      state = world.next(state, greedyAction(page, snapshot, state, goal));
    }
    if (onTrail.has(state)) {
      const members = trail.slice(onTrail.get(state));
      for (const member of members) fates[member] = members.length === 1 ? REACHES.blocked : REACHES.loop;
      trail.length = onTrail.get(state);
    }
    for (const back of trail.reverse()) {
      const next = world.next(back, greedyAction(page, snapshot, back, goal));
      const reaches = next === goal || fates[next] === REACHES.optimal || fates[next] === REACHES.detour;
      left[back] = left[next] + 1;
      if (!reaches || left[back] > maxSteps) fates[back] = REACHES.lost;
      else
        fates[back] = isOptimal(page, back, goal, greedyAction(page, snapshot, back, goal))
          ? REACHES.optimal
          : REACHES.detour;
    }
  }
  return fates;
}

/** For every stored goal: what becomes of the greedy walk from the start to it. */
export function fatesFrom(page, snapshot, start) {
  const fates = new Array(page.world.states).fill(REACHES.none);
  for (const goal of page.world.goals) {
    if (goal === start || unreachable(page, start, goal)) continue;
    const { cause, steps } = walk(page, snapshot, start, goal);
    if (cause === "") fates[goal] = steps === page.exact.distance(start, goal) ? REACHES.optimal : REACHES.detour;
    else fates[goal] = cause === "cap" ? REACHES.lost : cause;
  }
  return fates;
}
