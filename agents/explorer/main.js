/** Puts the page together: panels, controls, pointer and keyboard. */

import { differenceScale, distanceScale } from "./colors.js";
import { readPage } from "./data.js";
import { cellTable, count, element, pairSentence } from "./details.js";
import { Panel } from "./panel.js";
import { Player } from "./player.js";
import { drawSymbol } from "./symbols.js";
import { drawTable } from "./table.js";
import { View } from "./view.js";

const byId = (id) => document.getElementById(id);

/** The explorer of one page. */
class Explorer {
  constructor(page) {
    this.page = page;
    this.view = new View(page);
    this.cursor = null;
    this.panels = page.world.drawing ? page.planners.map((planner) => new Panel(this, planner)) : [];
    byId("panels").append(...this.panels.map((panel) => panel.element));
    const [play, back, forward, time, speed] = ["play", "back", "forward", "time", "speed"].map(byId);
    const controls = { play, back, forward, time, speed, text: byId("time-text"), list: byId("walks") };
    this.player = new Player(page, controls, () => this.mark());
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
    this.player.load(this.drawn, this.view.start, this.view.goal);
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (changes.play && !still) this.player.play();
    this.showDetails();
  }

  /** Shared scales reach to the longest exact distance, so that a single wild estimate does not hide all others. */
  paint() {
    const { view, drawn, page } = this;
    const truth = this.panels.find((panel) => panel.planner.exact);
    const own = view.scale === "own";
    for (const panel of drawn) {
      const alike = drawn.filter((other) => other.shows === panel.shows); // maps of the same quantity
      panel.paint(
        distanceScale(page.colors, own ? [panel.distances] : [truth.distances]),
        differenceScale(page.colors, own ? [panel.differences] : alike.map((other) => other.differences)),
      );
    }
    this.mark();
  }

  mark() {
    for (const panel of this.drawn) panel.mark(this.player.time, this.cursor);
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
    if (state === this.cursor && !tip.hidden) return;
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

  // Controls

  connect() {
    const { page, view } = this;
    const runs = byId("run");
    runs.append(
      element("option", "all runs", { value: "" }),
      ...page.runs.map((run) => element("option", run.name, { value: run.name })),
    );
    byId("run-label").hidden = page.runs.length < 2;
    byId("step-label").hidden = page.runs.every((run) => run.snapshots.length < 2);
    byId("step").max = String(page.steps.length - 1);
    for (const id of ["run", "scale", "second"])
      byId(id).addEventListener("change", (event) => view.set({ [id]: event.target.value }));
    byId("step").addEventListener("input", (event) => {
      const index = Number(event.target.value);
      view.set({ step: index === page.steps.length - 1 ? null : page.steps[index] });
    });
    for (const direction of ["to", "from"])
      byId(`direction-${direction}`).addEventListener("change", () => this.turn(direction));
    byId("swap").addEventListener("click", () => view.set({ goal: view.start, start: view.goal }));
    document.addEventListener("keydown", (event) => this.shortcut(event));
    window.addEventListener("hashchange", () => this.restore());
    new ResizeObserver(() => this.drawn && this.paint()).observe(byId("panels"));
    document.addEventListener("themechange", () => (this.drawLegend(), this.drawn && this.paint()));
    this.drawLegend();
  }

  shortcut(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName))
      return;
    const actions = {
      p: () => this.player.toggle(),
      ",": () => this.player.move(-1),
      ".": () => this.player.move(1),
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
    byId("step-text").textContent = `${page.steps[index].toLocaleString("en")} steps`;
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
    message.textContent =
      "This browser cannot decompress the data of the page (it has no DecompressionStream). Use a current version of Firefox, Chrome, Edge or Safari.";
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
