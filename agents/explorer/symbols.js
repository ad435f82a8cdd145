/** The symbols of a map, in cells with their centre at the origin and sides of 1; as sprites where there are many. */

import { REACHES } from "./walk.js";

export const DARK = "#101014";
export const WALK = "#ff5cf4";
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
const HATCH = new Path2D("M-.5 0L0-.5M-.5 .5L.5-.5M0 .5L.5 0");

/** Draw what a greedy action leads to, in a cell with its centre at the origin and sides of 1. */
export function drawFate(context, fate, [dx, dy]) {
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
export function drawEnd(context, fate) {
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

export function dot(context, radius, fill, outline) {
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

export function drawGoal(context) {
  context.strokeStyle = DARK;
  context.lineWidth = 0.12;
  context.stroke(STAR);
  context.fillStyle = "#ffd700";
  context.fill(STAR);
}

/** A one-way door: a frame that is open where the door leads, and a black arrow. */
export function drawDoor(context, [dx, dy]) {
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
export function outlined(context, path, width, color, outline) {
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
  else if (kind === "hatch") drawHatch(context, getComputedStyle(canvas));
  else if (kind.startsWith("end-")) drawEnd(context, kind.slice(4));
  else drawFate(context, kind, [1, 0]);
}

export function drawCursor(context) {
  outlined(context, CURSOR, 0.1, "#ffffff", DARK);
}

export function drawStart(context) {
  outlined(context, RING, 0.14, "#4dd2ff", DARK);
}

/** Diagonal lines for cells without a finite value, in the colours of the theme. */
export function drawHatch(context, style) {
  context.fillStyle = style.getPropertyValue("--unreachable");
  context.fillRect(-0.5, -0.5, 1, 1);
  context.strokeStyle = style.getPropertyValue("--hatch");
  context.lineWidth = 0.07;
  context.stroke(HATCH);
}

/** An empty context in CSS pixels on a sharp canvas. */
export function prepare(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const size = [Math.round(width * ratio), Math.round(height * ratio)];
  const context = canvas.getContext("2d");
  if (canvas.width !== size[0] || canvas.height !== size[1]) {
    [canvas.width, canvas.height] = size; // takes new memory
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

const sprites = new Map();

/** Draw a symbol into the cell at (x, y) from a picture of it, which is drawn once: many times as fast. */
export function stamp(context, x, y, size, key, draw) {
  const name = `${key} ${size} ${window.devicePixelRatio}`;
  if (!sprites.has(name)) {
    const canvas = document.createElement("canvas");
    const drawing = prepare(canvas, 3 * size, 3 * size); // symbols may reach into the neighbouring cells
    drawing.scale(size, size);
    drawing.translate(1.5, 1.5);
    draw(drawing);
    sprites.set(name, canvas);
  }
  context.drawImage(sprites.get(name), (x - 1) * size, (y - 1) * size, 3 * size, 3 * size);
}
