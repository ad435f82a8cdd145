/** A map of the world on a canvas: colours, doors and greedy actions below; goal, start and walk above. */

import {
  DARK,
  dot,
  drawCursor,
  drawDoor,
  drawEnd,
  drawFate,
  drawGoal,
  drawHatch,
  drawStart,
  outlined,
  prepare,
  stamp,
  WALK,
} from "./symbols.js";
import { REACHES } from "./walk.js";

/** Two canvases on top of each other; the upper one takes the pointer and the keyboard. */
export class MapView {
  constructor(world, label) {
    this.world = world;
    this.element = document.createElement("div");
    this.element.className = "map";
    this.lower = document.createElement("canvas");
    this.upper = document.createElement("canvas");
    this.lower.setAttribute("aria-hidden", "true");
    this.upper.tabIndex = 0;
    this.upper.setAttribute("role", "application");
    this.upper.setAttribute("aria-label", label);
    this.element.append(this.lower, this.upper);
  }

  /** The state under a pointer, or -1. */
  stateUnder(event) {
    const { left, top } = this.upper.getBoundingClientRect();
    return this.world.stateAt(
      Math.floor((event.clientX - left) / this.size),
      Math.floor((event.clientY - top) / this.size),
    );
  }

  /** The middle of a state's cell in the window. */
  place(state) {
    const { left, top } = this.upper.getBoundingClientRect();
    const [x, y] = this.world.cell(state);
    return [left + (x + 0.5) * this.size, top + (y + 0.5) * this.size];
  }

  /** Draw `color(state)` (null: hatched, undefined: nothing known), doors, and what the `fates` are. */
  paint({ color, fates, direction, action }) {
    const { width, height } = this.world.drawing;
    this.size = Math.max(4, Math.floor(this.element.clientWidth / width));
    const size = this.size;
    const context = prepare(this.lower, size * width, size * height);
    const style = getComputedStyle(this.element);
    const [wall, unknown] = ["--wall", "--unreachable"].map((name) => style.getPropertyValue(name));
    context.fillStyle = wall;
    context.fillRect(0, 0, size * width, size * height);
    for (let state = 0; state < this.world.states; state++) {
      const [x, y] = this.world.cell(state);
      const shade = color(state);
      context.fillStyle = shade ?? unknown;
      context.fillRect(x * size, y * size, size, size);
      if (shade === null) stamp(context, x, y, size, `hatch ${unknown}`, (drawing) => drawHatch(drawing, style));
    }
    this.paintSymbols(context, { fates, direction, action });
  }

  /** On top of all colours: symbols may reach into neighbouring cells. */
  paintSymbols(context, { fates, direction, action }) {
    const { world, size } = this;
    const limited = world.goals.length < world.states;
    for (let state = 0; state < world.states; state++) {
      const put = (key, draw) => stamp(context, ...world.cell(state), size, key, draw);
      const door = world.doors.get(state);
      const fate = fates ? fates[state] : REACHES.none;
      if (door !== undefined) put(`door ${door}`, (drawing) => drawDoor(drawing, world.direction(state, door)));
      if (limited && world.goalIndex[state] >= 0) put("stored", (drawing) => dot(drawing, 0.09, "#ffffff", 0.08));
      if (fate === REACHES.none) continue;
      if (direction === "from") {
        put(`end ${fate}`, (drawing) => drawEnd(drawing, fate));
        continue;
      }
      const taken = action(state);
      const good = fate === REACHES.optimal || fate === REACHES.detour;
      // The arrow of a door already shows where a greedy action through it leads.
      if (good && door === taken) continue;
      const heading = world.direction(state, taken);
      put(`${fate} ${heading}`, (drawing) => drawFate(drawing, fate, heading));
    }
  }

  /** Draw goal, start and cursor, and a walk up to a step. */
  mark({ goal, start, cursor, path, time }) {
    const { width, height } = this.world.drawing;
    const size = this.size;
    const context = prepare(this.upper, size * width, size * height);
    const at = (state, draw) => {
      if (state === null || state < 0) return;
      const [x, y] = this.world.cell(state);
      context.save();
      context.translate((x + 0.5) * size, (y + 0.5) * size);
      context.scale(size, size);
      draw();
      context.restore();
    };
    if (path) this.drawPath(context, path.states.slice(0, time + 1), size);
    at(start, () => drawStart(context));
    if (path) at(path.states[Math.min(time, path.states.length - 1)], () => dot(context, 0.3, WALK, 0.16));
    at(goal, () => drawGoal(context));
    at(cursor, () => drawCursor(context));
  }

  drawPath(context, states, size) {
    const path = new Path2D();
    for (const state of states) {
      const [x, y] = this.world.cell(state);
      path.lineTo((x + 0.5) * size, (y + 0.5) * size);
    }
    context.lineJoin = context.lineCap = "round";
    outlined(context, path, 0.16 * size, WALK, DARK);
  }
}
