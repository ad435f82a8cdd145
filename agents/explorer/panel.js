/** A planner's part of the page: a map of its distances with its greedy actions, and a second map of differences. */

import { greedyAction, minus } from "./data.js";
import { element } from "./details.js";
import { MapView } from "./map.js";
import { fatesFrom, fatesTo, REACHES } from "./walk.js";

export class Panel {
  constructor(app, planner) {
    this.app = app;
    this.planner = planner;
    this.element = element("section", "", { class: "panel", "data-planner": planner.name });
    const title = element("div");
    title.append(element("h2", planner.name), element("p", planner.description, { class: "about" }));
    this.element.append(title);
    this.note = element("p", "", { class: "note" });
    this.first = this.addMap(`${planner.name}: distances`);
    this.element.append(this.note);
    this.second = this.addMap(`${planner.name}: differences`);
  }

  addMap(label) {
    const figure = element("figure");
    const map = new MapView(
      this.app.page.world,
      `${label}. Arrow keys move, Enter selects, G sets the goal, S the start.`,
    );
    const bar = element("div", "", { class: "bar", "aria-hidden": "true" });
    const ends = element("div", "", { class: "ends" });
    const caption = element("figcaption");
    figure.append(caption, map.element, bar, ends);
    this.element.append(figure);
    this.app.listen(map);
    return { figure, map, bar, ends, caption };
  }

  /** Compute what the maps show, before scales are chosen over all panels. */
  measure(snapshot) {
    const { page, view } = this.app;
    const states = Array.from({ length: page.world.states }, (_, state) => state);
    this.snapshot = snapshot;
    const { table } = snapshot;
    this.distances = states.map((state) => (table ? table.distance(...view.pair(state)) : NaN));
    const [from, to] = view.direction === "to" ? [fatesTo, view.goal] : [fatesFrom, view.start];
    this.fates = from(page, snapshot, to);
    // The ground truth has no difference to itself: it shows how far there and back differ.
    this.shows = this.planner.exact && view.second === "difference" ? "asymmetry" : view.second;
    this.differences = states.map((state, i) => {
      if (!table || this.shows === "none") return NaN;
      const [origin, end] = view.pair(state);
      const other = this.shows === "asymmetry" ? table.distance(end, origin) : page.exact.distance(origin, end);
      return this.distances[i] - other;
    });
  }

  paint(distanceColors, differenceColors) {
    const { page, view } = this.app;
    const action = (state) => greedyAction(page, this.snapshot, state, view.goal);
    const shade = (colors, values) => (state) =>
      Number.isNaN(values[state]) ? undefined : colors.color(values[state]);
    this.first.map.paint({
      color: shade(distanceColors, this.distances),
      fates: this.fates,
      direction: view.direction,
      action,
    });
    this.caption();
    scaleBar(this.first, distanceColors, this.distances);
    this.second.figure.hidden = this.shows === "none" || !this.snapshot.table;
    if (this.second.figure.hidden) return;
    this.second.map.paint({ color: shade(differenceColors, this.differences) });
    const asymmetry = view.direction === "to" ? "to the goal − from the goal" : "from the start − to the start";
    this.second.caption.textContent = this.shows === "difference" ? "learned − exact" : asymmetry;
    scaleBar(this.second, differenceColors, this.differences);
  }

  caption() {
    const { page, view } = this.app;
    const where = view.direction === "to" ? "distance to the goal" : "distance from the start";
    this.first.caption.textContent = this.snapshot.table ? where : "greedy actions, without distances";
    this.first.bar.hidden = this.first.ends.hidden = !this.snapshot.table;
    const relevant = this.fates.filter((fate) => fate !== REACHES.none);
    const reached = relevant.filter((fate) => fate === REACHES.optimal || fate === REACHES.detour).length;
    const ends = view.direction === "to" ? "states reach the goal" : "goals are reached from the start";
    const step = this.planner.exact ? "" : `After ${this.snapshot.step.toLocaleString("en")} training steps: `;
    const gaps = this.distances
      .map((distance, state) => Math.abs(distance - page.exact.distance(...view.pair(state))))
      .filter(Number.isFinite);
    const mean = gaps.reduce((sum, gap) => sum + gap, 0) / (gaps.length - 1 || 1); // the anchor itself does not count
    const error = this.planner.exact || !this.snapshot.table ? "" : `, mean |learned − exact| ${mean.toFixed(2)} steps`;
    this.note.textContent = `${step}${reached} of ${relevant.length} ${ends}${error}.`;
  }

  /** Draw what is selected; a walk only where the greedy actions are. */
  mark(time, cursor) {
    const { goal, start } = this.app.view;
    this.first.map.mark({ goal, start, cursor, path: this.path, time });
    if (!this.second.figure.hidden) this.second.map.mark({ goal, start, cursor });
  }
}

/** The colours of a scale and its ends, with units; marks ends that some values lie beyond. */
function scaleBar({ map, figure, bar, ends }, scale, values) {
  figure.style.setProperty("--map-width", map.lower.style.width);
  bar.style.background = scale.gradient();
  const beyond = values.some((value) => Number.isFinite(value) && value > scale.high);
  const below = scale.low < 0 && values.some((value) => Number.isFinite(value) && value < scale.low);
  const round = (value) => minus(String(Math.sign(value) * (Math.round(Math.abs(value) * 10) / 10)));
  const plus = scale.low < 0 ? "+" : "";
  const texts = [
    `${below ? "≤ " : ""}${round(scale.low)}`,
    `${round((scale.low + scale.high) / 2)}`,
    `${beyond ? "≥ " : ""}${plus}${round(scale.high)} steps`,
  ];
  ends.replaceChildren(...texts.map((text) => element("span", text)));
}
