/** Puts the page together: panels, controls, pointer, keyboard, and the playing of walks. */

import { differenceScale, distanceScale } from "./colors.js";
import { greedyAction, minus, readPage } from "./data.js";
import { cellTable, count, element, pairSentence, walkSentence } from "./details.js";
import { drawSymbol, MapView } from "./map.js";
import { drawTable } from "./table.js";
import { View } from "./view.js";
import { fatesFrom, fatesTo, REACHES, shownSteps, walk } from "./walk.js";

const byId = (id) => document.getElementById(id);

/** A planner's part of the page: its distances and a second map. */
class Panel {
  constructor(app, planner) {
    this.app = app;
    this.planner = planner;
    this.element = element("section", "", { class: "panel", "data-planner": planner.name });
    this.note = element("p", "", { class: "note" });
    this.element.append(element("h2", planner.name), element("p", planner.description, { class: "about" }), this.note);
    this.first = this.addMap(`${planner.name}: distances`);
    this.second = this.addMap(`${planner.name}: differences`);
  }

  addMap(label) {
    const figure = element("figure");
    const map = new MapView(this.app.page.world, `${label}. Arrow keys move, Enter selects, G sets the goal, S the start.`);
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
    this.differences = states.map((state, i) => {
      if (!table || view.second === "none") return NaN;
      const [origin, end] = view.pair(state);
      const other = view.second === "asymmetry" ? table.distance(end, origin) : page.exact.distance(origin, end);
      return this.distances[i] - other;
    });
  }

  paint(distanceColors, differenceColors) {
    const { page, view } = this.app;
    const hidden = view.second === "none" || (view.second === "difference" && this.planner.exact);
    const action = (state) => greedyAction(page, this.snapshot, state, view.goal);
    const shade = (colors, values) => (state) => (Number.isNaN(values[state]) ? undefined : colors.color(values[state]));
    this.first.map.paint({ color: shade(distanceColors, this.distances), fates: this.fates, direction: view.direction, action });
    this.caption();
    scaleBar(this.first, distanceColors, this.distances);
    this.second.figure.hidden = hidden;
    if (hidden) return;
    this.second.map.paint({ color: shade(differenceColors, this.differences) });
    this.second.caption.textContent = view.second === "difference" ? "learned − exact" : "there − back";
    scaleBar(this.second, differenceColors, this.differences);
  }

  caption() {
    const { page, view } = this.app;
    const where = view.direction === "to" ? "distance to the goal" : "distance from the start";
    this.first.caption.textContent = this.snapshot.table ? where : "no distances: its learner teaches scores of actions";
    const relevant = this.fates.filter((fate) => fate !== REACHES.none);
    const reached = relevant.filter((fate) => fate === REACHES.optimal || fate === REACHES.detour).length;
    const ends = view.direction === "to" ? "states reach the goal" : "goals are reached from the start";
    const step = this.planner.exact ? "" : `After ${this.snapshot.step.toLocaleString("en")} training steps: `;
    const gaps = this.distances.map((distance, state) => Math.abs(distance - page.exact.distance(...view.pair(state)))).filter(Number.isFinite);
    const mean = gaps.reduce((sum, gap) => sum + gap, 0) / (gaps.length - 1 || 1); // the anchor itself does not count
    const error = this.planner.exact || !this.snapshot.table ? "" : `, mean |learned − exact| ${mean.toFixed(2)} steps`;
    this.note.textContent = `${step}${reached} of ${relevant.length} ${ends}${error}.`;
  }

  mark(time, cursor) {
    const { goal, start } = this.app.view;
    const path = this.path && time !== null ? this.path : null;
    for (const { map, figure } of [this.first, this.second]) if (!figure.hidden) map.mark({ goal, start, cursor, path, time });
  }
}

/** The colours of a scale and its ends, with units; marks ends that some values lie beyond. */
function scaleBar({ bar, ends }, scale, values) {
  bar.style.background = scale.gradient();
  const beyond = values.some((value) => Number.isFinite(value) && value > scale.high);
  const below = scale.low < 0 && values.some((value) => value < scale.low);
  const round = (value) => minus(String(Math.round(value * 10) / 10));
  const plus = scale.low < 0 ? "+" : "";
  const texts = [
    `${below ? "≤ " : ""}${round(scale.low)}`,
    `${round((scale.low + scale.high) / 2)}`,
    `${beyond ? "≥ " : ""}${plus}${round(scale.high)} steps`,
  ];
  ends.replaceChildren(...texts.map((text) => element("span", text)));
}

/** The explorer of one page. */
class Explorer {
  constructor(page) {
    this.page = page;
    this.view = new View(page);
    this.cursor = null;
    this.time = 0;
    this.timer = null;
    this.panels = page.world.drawing ? page.planners.map((planner) => new Panel(this, planner)) : [];
    byId("panels").append(...this.panels.map((panel) => panel.element));
    this.view.listener = (changes) => this.draw(changes);
    this.connect();
    this.restore();
  }

  // Drawing

  draw(changes = {}) {
    const shown = this.view.shown();
    this.showControls();
    if (!this.page.world.drawing) {
      drawTable(byId("panels"), this.page, this.view, (state) => this.choose(state));
      this.showDetails();
      return;
    }
    const visible = new Map(shown.map(({ planner, snapshot }) => [planner, snapshot]));
    this.drawn = this.panels.filter((panel) => visible.has(panel.planner));
    for (const panel of this.panels) panel.element.hidden = !visible.has(panel.planner);
    for (const panel of this.drawn) panel.measure(visible.get(panel.planner));
    this.paint();
    this.startWalks();
    if (changes.start !== undefined && changes.play) this.play();
    this.showDetails();
  }

  /** Shared scales reach to the longest exact distance, so that a single wild estimate does not hide all others. */
  paint() {
    const { view, drawn, page } = this;
    const truth = this.panels.find((panel) => panel.planner.exact);
    const own = view.scale === "own";
    const differences = drawn.filter((panel) => view.second === "asymmetry" || !panel.planner.exact);
    for (const panel of drawn) {
      const distances = own ? [panel.distances] : [truth.distances];
      panel.paint(
        distanceScale(page.colors, distances),
        differenceScale(page.colors, own ? [panel.differences] : differences.map((other) => other.differences)),
      );
    }
    this.mark();
  }

  mark() {
    for (const panel of this.drawn) panel.mark(this.walking ? this.time : null, this.cursor);
  }

  // The cell under the pointer or the cursor of the keyboard

  showDetails() {
    const state = this.cursor ?? (this.view.direction === "to" ? this.view.start : this.view.goal);
    const [from, to] = this.view.pair(state);
    const table = cellTable(this.page, this.view.shown(), from, to);
    byId("pair").textContent = pairSentence(this.page, from, to);
    byId("cell").replaceChildren(table);
    return table;
  }

  hover(map, state, event) {
    const tip = byId("tip");
    this.cursor = state >= 0 ? state : null;
    this.mark();
    const table = this.showDetails();
    tip.hidden = state < 0 || event.pointerType !== "mouse";
    if (tip.hidden) return;
    tip.replaceChildren(element("p", byId("pair").textContent), table.cloneNode(true));
    const [x, y] = map.place(state);
    const { offsetWidth: width, offsetHeight: height } = tip;
    tip.style.left = `${Math.max(4, Math.min(x + map.size, window.innerWidth - width - 12))}px`;
    const below = y + map.size + height < window.innerHeight;
    tip.style.top = `${below ? y + map.size : Math.max(4, y - map.size - height)}px`;
  }

  listen(map) {
    const { upper } = map;
    upper.addEventListener("pointermove", (event) => this.hover(map, map.stateUnder(event), event));
    upper.addEventListener("pointerleave", (event) => this.hover(map, -1, event));
    upper.addEventListener("click", (event) => {
      const state = map.stateUnder(event);
      if (state < 0) return;
      this.cursor = event.pointerType === "touch" ? null : state;
      this.choose(state, event.shiftKey);
    });
    upper.addEventListener("keydown", (event) => this.moveCursor(event));
    upper.addEventListener("blur", () => {
      this.cursor = null;
      this.mark();
    });
  }

  /** Set the goal or the start, as the switch says; `other`: the other one. */
  choose(state, other = false) {
    const goal = byId("click-goal").checked !== other;
    this.view.set(goal ? { goal: state } : { start: state, play: true });
  }

  moveCursor(event) {
    const { world } = this.page;
    const move = { ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowDown: [0, 1], ArrowLeft: [-1, 0] }[event.key];
    const state = this.cursor ?? this.view.anchor;
    if (move) {
      let [x, y] = world.cell(state);
      const { width, height } = world.drawing;
      let next = -1;
      while (next < 0 && x >= 0 && y >= 0 && x < width && y < height) {
        [x, y] = [x + move[0], y + move[1]]; // over walls
        next = world.stateAt(x, y);
      }
      this.cursor = next < 0 ? state : next;
      this.mark();
      this.showDetails();
    } else if (event.key === "Enter") this.choose(state, event.shiftKey);
    else if (event.key === "g") this.view.set({ goal: state });
    else if (event.key === "s") this.view.set({ start: state, play: true });
    else return;
    event.preventDefault();
  }

  // Walks

  startWalks() {
    this.stop();
    const { start, goal } = this.view;
    this.walking = start !== goal;
    const list = byId("walks");
    list.replaceChildren();
    for (const panel of this.drawn) {
      panel.path = this.walking ? walk(this.page, panel.snapshot, start, goal) : null;
      if (!panel.path) continue;
      const { cause, steps } = panel.path;
      const item = element("li", "", { "data-planner": panel.planner.name, "data-cause": cause, "data-steps": steps });
      item.append(element("b", panel.planner.name), ` ${walkSentence(this.page, panel.snapshot, panel.path)}`);
      list.append(item);
    }
    if (!this.walking) list.append(element("li", "Start and goal are the same cell."));
    this.length = Math.max(0, ...this.drawn.map(({ path }) => (path ? shownSteps(path) : 0)));
    byId("time").max = String(this.length);
    this.setTime(this.length);
  }

  setTime(time) {
    this.time = Math.min(Math.max(0, time), this.length);
    byId("time").value = String(this.time);
    byId("time-text").textContent = `step ${this.time} of ${this.length}`;
    this.mark();
    if (this.time >= this.length) this.stop();
  }

  play() {
    if (window.matchMedia("(prefers-reduced-motion: reduce)").matches || !this.walking) return;
    this.stop();
    if (this.time >= this.length) this.setTime(0);
    this.timer = setInterval(() => this.setTime(this.time + 1), 1000 / Number(byId("speed").value));
    byId("play").textContent = "Pause";
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    byId("play").textContent = "Play";
  }

  togglePlay() {
    if (this.timer) this.stop();
    else this.play();
  }

  // Controls

  connect() {
    const { page, view } = this;
    const runs = byId("run");
    runs.append(element("option", "all runs", { value: "" }), ...page.runs.map((run) => element("option", run.name, { value: run.name })));
    byId("run-label").hidden = page.runs.length < 2;
    byId("step-label").hidden = page.steps.length < 2;
    byId("step").max = String(page.steps.length - 1);
    for (const id of ["run", "scale", "second"]) byId(id).addEventListener("change", (event) => view.set({ [id]: event.target.value }));
    byId("step").addEventListener("input", (event) => {
      const index = Number(event.target.value);
      view.set({ step: index === page.steps.length - 1 ? null : page.steps[index] });
    });
    for (const direction of ["to", "from"])
      byId(`direction-${direction}`).addEventListener("change", () => this.turn(direction));
    byId("play").addEventListener("click", () => this.togglePlay());
    byId("back").addEventListener("click", () => (this.stop(), this.setTime(this.time - 1)));
    byId("forward").addEventListener("click", () => (this.stop(), this.setTime(this.time + 1)));
    byId("time").addEventListener("input", (event) => (this.stop(), this.setTime(Number(event.target.value))));
    byId("speed").addEventListener("change", () => this.timer && this.play());
    byId("swap").addEventListener("click", () => view.set({ goal: view.start, start: view.goal }));
    document.addEventListener("keydown", (event) => this.shortcut(event));
    window.addEventListener("hashchange", () => this.restore());
    new ResizeObserver(() => this.drawn && this.paint()).observe(byId("panels"));
    document.addEventListener("themechange", () => (this.drawLegend(), this.drawn && this.paint()));
    this.drawLegend();
  }

  shortcut(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const actions = {
      p: () => this.togglePlay(),
      ",": () => (this.stop(), this.setTime(this.time - 1)),
      ".": () => (this.stop(), this.setTime(this.time + 1)),
      d: () => this.turn(this.view.direction === "to" ? "from" : "to"),
      x: () => byId("swap").click(),
    };
    actions[event.key]?.();
  }

  /** Change the direction; a click then sets the end that the distances are measured from. */
  turn(direction) {
    byId(direction === "to" ? "click-goal" : "click-start").checked = true;
    this.view.set({ direction });
  }

  showControls() {
    const { view, page } = this;
    byId(`direction-${view.direction}`).checked = true;
    for (const id of ["run", "scale", "second"]) byId(id).value = view[id];
    const index = view.step === null ? page.steps.length - 1 : page.steps.indexOf(view.step);
    byId("step").value = String(index);
    byId("step-text").textContent = `${page.steps[index].toLocaleString("en")}`;
    byId("goal-text").textContent = page.world.label(view.goal);
    byId("start-text").textContent = page.world.label(view.start);
    document.body.dataset.direction = view.direction;
  }

  drawLegend() {
    for (const canvas of document.querySelectorAll("canvas[data-symbol]")) drawSymbol(canvas, canvas.dataset.symbol);
  }

  restore() {
    const ignored = this.view.restore(window.location.hash);
    byId(this.view.direction === "to" ? "click-goal" : "click-start").checked = true;
    const message = byId("message");
    message.hidden = !ignored.length;
    message.textContent = `The link names ${count(ignored.length, "thing")} that this page does not have: ${ignored.join(", ")}.`;
  }
}

async function main() {
  const message = byId("message");
  if (typeof DecompressionStream === "undefined") {
    message.textContent = "This browser cannot decompress the data of the page (it has no DecompressionStream). Use a current version of Firefox, Chrome, Edge or Safari.";
    message.hidden = false;
    return;
  }
  try {
    const page = await readPage(JSON.parse(byId("data").textContent));
    window.explorer = new Explorer(page);
    document.body.dataset.ready = "yes";
  } catch (error) {
    message.textContent = `The page cannot be shown: ${error.message}. It may be damaged; make it again with explore-agents.`;
    message.hidden = false;
    throw error;
  }
}

main();
