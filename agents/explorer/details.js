/** Numbers and outcomes as text: the table of a cell, and how each walk ends and why. */

import { greedyAction, minus } from "./data.js";
import { firstMistake, isOptimal, loopOf } from "./walk.js";

/** An element with text and attributes. */
export function element(name, text = "", attributes = {}) {
  const node = document.createElement(name);
  node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

/** A difference of steps with its sign. */
export function signed(table, value) {
  if (!Number.isFinite(value)) return "–";
  const text = value.toFixed(table.digits);
  return Number(text) > 0 ? `+${text}` : minus(text);
}

/** For a pair of states, a column per planner: distance, difference to the exact one, and steps left after each action. */
export function cellTable(page, planners, state, goal) {
  const table = element("table", "", { class: "numbers" });
  const head = table.createTHead().insertRow();
  const names = planners.map(({ planner }) => planner.name);
  for (const title of ["steps", ...names]) head.append(element("th", title, { scope: "col" }));
  const body = table.createTBody();
  const addRow = (title, cell) => {
    const row = body.insertRow();
    row.append(element("th", title, { scope: "row" }), ...planners.map(cell));
  };
  addRow("distance", ({ snapshot: { table: steps } }) =>
    element("td", steps ? steps.show(steps.distance(state, goal)) : "–"),
  );
  if (page.exact)
    addRow("− exact", ({ planner, snapshot: { table: steps } }) => {
      const known = steps && !planner.exact;
      return element("td", known ? signed(steps, steps.distance(state, goal) - page.exact.distance(state, goal)) : "");
    });
  page.world.actions.forEach((name, action) =>
    addRow(`after ${name}`, ({ snapshot }) => actionCell(page, snapshot, state, goal, action)),
  );
  return table;
}

function actionCell(page, { table, greedy }, state, goal, action) {
  const cell = element("td", table ? table.show(table.steps(state, goal, action)) : "\u00a0");
  if (state === goal || greedyAction(page, { greedy }, state, goal) !== action) return cell;
  const wrong = isOptimal(page, state, goal, action) === false;
  cell.className = wrong ? "taken wrong" : "taken";
  cell.dataset.mark = wrong ? "✗" : "✓";
  cell.title = wrong ? "the greedy action; not on a shortest path" : "the greedy action";
  return cell;
}

/** One sentence about the exact distances between two states, there and back. */
export function pairSentence(page, state, goal) {
  const { world, exact } = page;
  const between = `From ${world.label(state)} to ${world.label(goal)}`;
  if (!exact) return `${between}.`;
  const show = (distance) =>
    Number.isNaN(distance) ? "not stored" : Number.isFinite(distance) ? `${distance} steps` : "unreachable";
  return `${between}: exactly ${show(exact.distance(state, goal))}; back: ${show(exact.distance(goal, state))}.`;
}

/** How a walk ends, where, and why. */
export function walkSentence(page, snapshot, path) {
  const { world } = page;
  const exact = page.exact.distance(path.start, path.goal);
  const last = path.states.at(-1);
  const parts = [];
  if (path.success) {
    const extra = path.steps - exact;
    const ending = extra ? `${count(extra, "step")} more than a shortest path` : "a shortest path";
    parts.push(`Reaches the goal in ${count(path.steps, "step")}: ${ending}.`);
  } else if (path.cause === "blocked") {
    const action = path.actions.at(-1);
    const taken = count(path.actions.length - 1, "step");
    parts.push(
      `Stuck at ${world.label(last)} after ${taken}: the greedy action ${world.actions[action]} is blocked by ${obstacle(world, last, action)}.`,
    );
  } else if (path.cause === "loop") {
    const { entry, length } = loopOf(path);
    parts.push(
      `Loops: from step ${entry} on it returns to ${world.label(path.states[entry])} every ${count(length, "step")}.`,
    );
  } else {
    parts.push(`Still on its way after ${path.steps} steps, where planning ends.`);
  }
  if (!Number.isFinite(exact)) parts.push("The goal is unreachable from there.");
  const mistake = firstMistake(page, path);
  if (mistake !== null) parts.push(mistakeSentence(page, snapshot, path, mistake));
  return parts.join(" ");
}

function obstacle(world, state, action) {
  if (!world.drawing.moves) return "the world";
  const [x, y] = world.cell(state);
  const [dx, dy] = world.direction(state, action);
  return world.stateAt(x + dx, y + dy) < 0 ? "a wall" : "a one-way door";
}

/** Where a walk first leaves the shortest paths: what it chose, what was optimal, and the numbers that decided. */
function mistakeSentence(page, snapshot, path, step) {
  const { world, exact } = page;
  const [state, taken] = [path.states[step], path.actions[step]];
  const best = world.actions.findIndex((_, action) => isOptimal(page, state, path.goal, action));
  const where = `First departure from the shortest paths: step ${step + 1}, at ${world.label(state)}, ${world.actions[taken]} instead of ${world.actions[best]}`;
  if (!snapshot.table) return `${where}.`;
  const learned = (action) => snapshot.table.show(snapshot.table.steps(state, path.goal, action));
  const truth = (action) => exact.show(exact.steps(state, path.goal, action));
  const remaining = (action) => `${learned(action)} (exactly ${truth(action)})`;
  return `${where}: learned steps left ${remaining(taken)} against ${remaining(best)}.`;
}

export function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
