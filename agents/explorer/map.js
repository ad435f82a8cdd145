/** A map of the world on a canvas: colours, doors and greedy actions below; goal, start and walk above. */

import { REACHES } from "./walk.js";

const STYLES = {
  optimal: { fill: "#ffffff", width: 0.1 },
  detour: { fill: "#ffb000", width: 0.1 },
  lost: { fill: "#ff3b6b", width: 0.1 },
  loop: { fill: "#ff3b6b", width: 0.22 },
};
const DARK = "#101014";

/** Draw what a greedy action leads to, in a cell with its centre at the origin and sides of 1. */
function drawFate(context, fate, [dx, dy]) {
  context.lineJoin = "round";
  if (fate === REACHES.blocked) {
    context.save();
    context.translate(dx * 0.3, dy * 0.3);
    cross(context, 0.19, 0.26, DARK);
    cross(context, 0.19, 0.13, STYLES.loop.fill);
    context.restore();
    return;
  }
  const { fill, width } = STYLES[fate];
  context.save();
  context.rotate(Math.atan2(dy, dx));
  context.beginPath();
  if (fate === REACHES.detour) {
    // A head without a shaft: told from an optimal action by its form, not by its colour alone.
    polygon(context, [[-0.2, -0.26], [0.28, 0], [-0.2, 0.26]]); // prettier-ignore
  } else {
    const half = width / 2;
    const head = fate === REACHES.loop ? 0.32 : 0.22;
    polygon(context, [[-0.36, -half], [0.02, -half], [0.02, -head], [0.38, 0], [0.02, head], [0.02, half], [-0.36, half]]); // prettier-ignore
  }
  context.strokeStyle = DARK;
  context.lineWidth = 0.09;
  context.stroke();
  context.fillStyle = fill;
  context.fill();
  context.restore();
}

function polygon(context, points) {
  points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.closePath();
}

function cross(context, size, width, color) {
  context.strokeStyle = color;
  context.lineWidth = width;
  context.lineCap = "round";
  context.beginPath();
  context.moveTo(-size, -size);
  context.lineTo(size, size);
  context.moveTo(size, -size);
  context.lineTo(-size, size);
  context.stroke();
}

/** What an end of a walk is worth marking with, in the map of distances from the start. */
function drawEnd(context, fate) {
  if (fate === REACHES.optimal) return;
  if (fate === REACHES.detour) {
    dot(context, 0.13, STYLES.detour.fill, 0.07);
  } else if (fate === REACHES.loop) {
    ring(context, 0.22, 0.24, DARK);
    ring(context, 0.22, 0.12, STYLES.loop.fill);
  } else {
    cross(context, 0.18, 0.24, DARK);
    cross(context, 0.18, 0.12, STYLES.lost.fill);
  }
}

function dot(context, radius, fill, outline) {
  context.beginPath();
  context.arc(0, 0, radius, 0, 2 * Math.PI);
  context.strokeStyle = DARK;
  context.lineWidth = outline;
  context.stroke();
  context.fillStyle = fill;
  context.fill();
}

function ring(context, radius, width, color) {
  context.beginPath();
  context.arc(0, 0, radius, 0, 2 * Math.PI);
  context.strokeStyle = color;
  context.lineWidth = width;
  context.stroke();
}

function star(context) {
  context.beginPath();
  for (let i = 0; i < 10; i++) {
    const radius = i % 2 ? 0.2 : 0.48;
    const angle = (i / 5) * Math.PI - Math.PI / 2;
    context.lineTo(radius * Math.cos(angle), radius * Math.sin(angle));
  }
  context.closePath();
  context.strokeStyle = DARK;
  context.lineWidth = 0.12;
  context.stroke();
  context.fillStyle = "#ffd700";
  context.fill();
}

/** A one-way door: a frame that is open where the door leads, and a black arrow. */
function drawDoor(context, [dx, dy]) {
  context.save();
  context.rotate(Math.atan2(dy, dx));
  for (const [width, color] of [[0.24, "#ffffff"], [0.12, DARK]]) {
    context.strokeStyle = color;
    context.lineWidth = width;
    context.lineCap = "butt";
    context.beginPath();
    context.moveTo(-0.5, -0.44);
    context.lineTo(0.5, -0.44);
    context.moveTo(-0.5, 0.44);
    context.lineTo(0.5, 0.44);
    context.stroke();
  }
  context.beginPath();
  polygon(context, [[-0.4, -0.1], [0, -0.1], [0, -0.28], [0.42, 0], [0, 0.28], [0, 0.1], [-0.4, 0.1]]); // prettier-ignore
  context.strokeStyle = "#ffffff";
  context.lineWidth = 0.16;
  context.lineJoin = "round";
  context.stroke();
  context.fillStyle = DARK;
  context.fill();
  context.restore();
}

/** Draw one symbol of the legend into a canvas of its own. */
export function drawSymbol(canvas, kind) {
  const size = 22;
  const context = prepare(canvas, size, size);
  context.translate(size / 2, size / 2);
  context.scale(size - 2, size - 2);
  if (kind === "goal") star(context);
  else if (kind === "start") drawStart(context);
  else if (kind === "door") drawDoor(context, [1, 0]);
  else if (kind === "hatch") hatch(context, -0.5, -0.5, 1, canvas);
  else if (kind.startsWith("end-")) drawEnd(context, kind.slice(4));
  else drawFate(context, kind, [1, 0]);
}

function drawStart(context) {
  ring(context, 0.32, 0.26, DARK);
  ring(context, 0.32, 0.14, "#4dd2ff");
}

/** Diagonal lines for cells without a finite value. */
function hatch(context, x, y, size, element) {
  const style = getComputedStyle(element);
  context.fillStyle = style.getPropertyValue("--unreachable");
  context.fillRect(x, y, size, size);
  context.strokeStyle = style.getPropertyValue("--hatch");
  context.lineWidth = size * 0.07;
  context.beginPath();
  for (const [a, b] of [[0, 0.5], [0, 1], [0.5, 1]]) {
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
    return this.world.stateAt(Math.floor((event.clientX - left) / this.size), Math.floor((event.clientY - top) / this.size));
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
    at(goal, () => star(context));
    if (path) at(path.states[Math.min(time, path.states.length - 1)], () => dot(context, 0.26, "#ff5cf4", 0.16));
    at(cursor, () => {
      for (const [lineWidth, color] of [[0.18, DARK], [0.09, "#ffffff"]]) {
        context.strokeStyle = color;
        context.lineWidth = lineWidth;
        context.strokeRect(-0.5, -0.5, 1, 1);
      }
    });
  }

  drawPath(context, states, size) {
    for (const [width, color] of [[0.3, DARK], [0.17, "#ff5cf4"]]) {
      context.strokeStyle = color;
      context.lineWidth = width * size;
      context.lineJoin = context.lineCap = "round";
      context.beginPath();
      for (const state of states) {
        const [x, y] = this.world.cell(state);
        context.lineTo((x + 0.5) * size, (y + 0.5) * size);
      }
      context.stroke();
    }
  }
}
