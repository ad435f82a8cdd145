/** Worlds without cells: the nearest states as a table, with what every planner estimates. */

import { greedyAction } from "./data.js";
import { element } from "./details.js";

const ROWS = 50;
const VALUES = 8; // of an observation

/** Show the states nearest to the anchor by the first planner that has distances; a click selects a state. */
export function drawTable(container, page, view, choose) {
  const planners = view.shown();
  const first = planners.find(({ snapshot }) => snapshot.table);
  const far = (state) => (first ? orderable(first.snapshot.table.distance(...view.pair(state))) : 0);
  const states = Array.from({ length: page.world.states }, (_, state) => state).filter(
    (state) => state !== view.anchor,
  );
  const distances = new Map(states.map((state) => [state, far(state)]));
  states.sort((a, b) => (distances.get(a) < distances.get(b) ? -1 : distances.get(a) > distances.get(b) ? 1 : a - b));
  const table = element("table", "", { class: "numbers" });
  const head = table.createTHead().insertRow();
  const titles = planners.map(({ planner }) => `${planner.name}: distance (action)`);
  for (const title of ["state", ...titles, "observation"]) head.append(element("th", title, { scope: "col" }));
  const body = table.createTBody();
  for (const state of states.slice(0, ROWS)) body.append(stateRow(page, view, planners, state, choose));
  const order = view.direction === "to" ? `to the goal, state ${view.goal}` : `from the start, state ${view.start}`;
  const shown = Math.min(ROWS, states.length);
  const caption = `The ${shown} of ${states.length} other states with the shortest learned distance ${order}`;
  const section = element("section", "", { class: "wide nearest" });
  section.append(element("h2", caption), table);
  container.replaceChildren(section);
}

function stateRow(page, view, planners, state, choose) {
  const row = document.createElement("tr");
  const button = element("button", String(state), { type: "button" });
  button.addEventListener("click", () => choose(state));
  row.append(document.createElement("td"));
  row.firstChild.append(button);
  for (const { snapshot } of planners) {
    const [from, to] = view.pair(state);
    const distance = snapshot.table ? snapshot.table.show(snapshot.table.distance(from, to)) : "–";
    const known = page.world.goalIndex[to] >= 0;
    row.append(element("td", known ? `${distance} (${greedyAction(page, snapshot, from, to)})` : "–"));
  }
  row.append(element("td", observation(page.world.observations[state]), { class: "observation" }));
  return row;
}

function observation(values) {
  return values.slice(0, VALUES).join(", ") + (values.length > VALUES ? ", …" : "");
}

function orderable(distance) {
  return Number.isNaN(distance) ? Infinity : distance;
}
