/** Plays the greedy walks of all planners at the same time. */

import { element, walkSentence } from "./details.js";
import { shownSteps, walk } from "./walk.js";

export class Player {
  /** `show(time)` draws a step; `controls` are the elements of the player. */
  constructor(page, controls, show) {
    Object.assign(this, { page, controls, show, time: 0, length: 0, timer: null });
    const { play, back, forward, time, speed } = controls;
    play.addEventListener("click", () => this.toggle());
    back.addEventListener("click", () => this.move(-1));
    forward.addEventListener("click", () => this.move(1));
    time.addEventListener("input", () => this.move(Number(time.value) - this.time));
    speed.addEventListener("change", () => this.timer && this.play());
  }

  /** Compute the walk of every panel, and say how each ends. */
  load(panels, start, goal) {
    this.stop();
    this.controls.list.replaceChildren();
    this.length = 0;
    for (const panel of panels) {
      panel.path = start === goal ? null : walk(this.page, panel.snapshot, start, goal);
      if (!panel.path) continue;
      const { cause, steps } = panel.path;
      const item = element("li", "", { "data-planner": panel.planner.name, "data-cause": cause, "data-steps": steps });
      item.append(element("b", panel.planner.name), ` ${walkSentence(this.page, panel.snapshot, panel.path)}`);
      this.controls.list.append(item);
      this.length = Math.max(this.length, shownSteps(panel.path));
    }
    if (start === goal) this.controls.list.append(element("li", "Start and goal are the same cell."));
    this.controls.time.max = String(this.length);
    this.setTime(this.length);
  }

  setTime(time) {
    this.time = Math.min(Math.max(0, time), this.length);
    this.controls.time.value = String(this.time);
    this.controls.text.textContent = `step ${this.time} of ${this.length}`;
    this.show(this.time);
    if (this.time >= this.length) this.stop();
  }

  /** Go some steps on or back, and pause there. */
  move(steps) {
    this.stop();
    this.setTime(this.time + steps);
  }

  play() {
    this.stop();
    if (this.time >= this.length) this.setTime(0);
    this.timer = setInterval(() => this.setTime(this.time + 1), 1000 / Number(this.controls.speed.value));
    this.controls.play.textContent = "Pause";
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.controls.play.textContent = "Play";
  }

  toggle() {
    if (this.timer) this.stop();
    else this.play();
  }
}
