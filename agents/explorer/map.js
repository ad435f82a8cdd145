/** A map of the world on a canvas: colours, doors and greedy actions below; goal, start and walk above. */

import { REACHES } from "./walk.js";

const DARK = "#101014";
const WALK = "#ff5cf4";
const FAILURE = "#ff3b6b";
const THIN = arrow(0.05, 0.22);
// Told apart by form as well as by colour.
const STYLES = {
  optimal: { fill: "#ffffff", shape: THIN },
  detour: { fill: "#ffb000", shape: new Path2D("M-.2-.26L.28 0L-.2 .26Z") },
  lost: { fill: FAILURE, shape: THIN },
  loop: { fill: FAILURE, shape: arrow(0.11, 0.32) },
};
const DOOR = arrow(0.1, 0.28);
const DOOR_FRAME = new Path2D("M-.5-.44H.5M-.5 .44H.5");
const CROSS = new Path2D("M-.19-.19L.19 .19M.19-.19L-.19 .19");
const STAR = starShape();
const RING = circle(0.28);
const CURSOR = new Path2D("M-.5-.5H.5V.5H-.5Z");
const DIAGONALS = [
  [0, 0.5],
  [0, 1],
  [0.5, 1],
];

/** Draw what a greedy action leads to, in a cell with its centre at the origin and sides of 1. */
function drawFate(context, fate, [dx, dy]) {
  context.lineJoin = "round";
  if (fate === REACHES.blocked) {
    context.save();
    context.translate(dx * 0.3, dy * 0.3);
    context.lineCap = "round";
    outlined(context, CROSS, 0.13, FAILURE, DARK);
    context.restore();
    return;
  }
  const { fill, shape } = STYLES[fate];
  context.save();
  context.rotate(Math.atan2(dy, dx));
  context.strokeStyle = DARK;
  context.lineWidth = 0.09;
  context.stroke(shape);
  context.fillStyle = fill;
  context.fill(shape);
  context.restore();
}

/** An arrow to the right with a shaft and a head of these half-widths. */
function arrow(shaft, head) {
  return new Path2D(`M-.37 ${-shaft}H.01V${-head}L.39 0L.01 ${head}V${shaft}H-.37Z`);
}

/** What an end of a walk is worth marking with, in the map of distances from the start. */
function drawEnd(context, fate) {
  if (fate === REACHES.optimal) return;
  if (fate === REACHES.detour) {
    dot(context, 0.13, STYLES.detour.fill, 0.07);
  } else if (fate === REACHES.loop) {
    outlined(context, RING, 0.12, FAILURE, DARK);
  } else {
    context.lineCap = "round";
    outlined(context, CROSS, 0.13, FAILURE, DARK);
  }
}

function dot(context, radius, fill, outline) {
  const shape = circle(radius);
  context.strokeStyle = DARK;
  context.lineWidth = outline;
  context.stroke(shape);
  context.fillStyle = fill;
  context.fill(shape);
}

function circle(radius) {
  const path = new Path2D();
  path.arc(0, 0, radius, 0, 2 * Math.PI);
  return path;
}

/** The sign of the goal: a star with five points. */
function starShape() {
  const path = new Path2D();
  for (let corner = 0; corner < 10; corner++) {
    const radius = corner % 2 ? 0.2 : 0.48;
    const angle = (corner / 5 - 0.5) * Math.PI;
    path.lineTo(radius * Math.cos(angle), radius * Math.sin(angle));
  }
  path.closePath();
  return path;
}

function drawGoal(context) {
  context.strokeStyle = DARK;
  context.lineWidth = 0.12;
  context.stroke(STAR);
  context.fillStyle = "#ffd700";
  context.fill(STAR);
}

/** A one-way door: a frame that is open where the door leads, and a black arrow. */
function drawDoor(context, [dx, dy]) {
  context.save();
  context.rotate(Math.atan2(dy, dx));
  context.lineCap = "butt";
  outlined(context, DOOR_FRAME, 0.12, DARK, "#ffffff");
  context.strokeStyle = "#ffffff";
  context.lineWidth = 0.16;
  context.lineJoin = "round";
  context.stroke(DOOR);
  context.fillStyle = DARK;
  context.fill(DOOR);
  context.restore();
}

/** A line that is visible on every colour. */
function outlined(context, path, width, color, outline) {
  context.strokeStyle = outline;
  context.lineWidth = 2 * width;
  context.stroke(path);
  context.strokeStyle = color;
  context.lineWidth = width;
  context.stroke(path);
}

/** Draw one symbol of the legend into a canvas of its own. */
export function drawSymbol(canvas, kind) {
  const size = 22;
  const context = prepare(canvas, size, size);
  context.translate(size / 2, size / 2);
  context.scale(size - 2, size - 2);
  if (kind === "goal") drawGoal(context);
  else if (kind === "start") drawStart(context);
  else if (kind === "door") drawDoor(context, [1, 0]);
  else if (kind === "hatch") hatch(context, -0.5, -0.5, 1, canvas);
  else if (kind.startsWith("end-")) drawEnd(context, kind.slice(4));
  else drawFate(context, kind, [1, 0]);
}

function drawStart(context) {
  outlined(context, RING, 0.14, "#4dd2ff", DARK);
}

/** Diagonal lines for cells without a finite value. */
function hatch(context, x, y, size, element) {
  const style = getComputedStyle(element);
  context.fillStyle = style.getPropertyValue("--unreachable");
  context.fillRect(x, y, size, size);
  context.strokeStyle = style.getPropertyValue("--hatch");
  context.lineWidth = size * 0.07;
  context.beginPath();
  for (const [a, b] of DIAGONALS) {
    context.moveTo(x + size * a, y + size * b);
    context.lineTo(x + size * b, y + size * a);
  }
  context.stroke();
}

/** A context in CSS pixels on a sharp canvas. */
function prepare(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return context;
}

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
    const { width, height, moves } = this.world.drawing;
    this.size = Math.max(4, Math.floor(this.element.clientWidth / width));
    const size = this.size;
    const context = prepare(this.lower, size * width, size * height);
    const style = getComputedStyle(this.element);
    context.fillStyle = style.getPropertyValue("--wall");
    context.fillRect(0, 0, size * width, size * height);
    const limited = this.world.goals.length < this.world.states;
    for (let state = 0; state < this.world.states; state++) {
      const [x, y] = this.world.cell(state);
      const shade = color(state);
      if (shade === null) {
        hatch(context, x * size, y * size, size, this.element);
      } else {
        context.fillStyle = shade ?? style.getPropertyValue("--unreachable");
        context.fillRect(x * size, y * size, size, size);
      }
      context.save();
      context.translate((x + 0.5) * size, (y + 0.5) * size);
      context.scale(size, size);
      if (this.world.doors.has(state)) drawDoor(context, moves[this.world.doors.get(state)]);
      if (limited && this.world.goalIndex[state] >= 0) dot(context, 0.09, "#ffffff", 0.08);
      if (fates) this.paintFate(context, state, fates[state], direction, action);
      context.restore();
    }
  }

  paintFate(context, state, fate, direction, action) {
    if (fate === REACHES.none) return;
    if (direction === "from") {
      drawEnd(context, fate);
      return;
    }
    const taken = action(state);
    const good = fate === REACHES.optimal || fate === REACHES.detour;
    // The arrow of a door already shows where a greedy action through it leads.
    if (good && this.world.doors.get(state) === taken) return;
    drawFate(context, fate, this.world.drawing.moves[taken]);
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
    at(cursor, () => outlined(context, CURSOR, 0.1, "#ffffff", DARK));
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
