/** What is selected, and the same as the fragment of the URL, so that a view can be linked to. */

const CHOICES = { direction: ["to", "from"], scale: ["shared", "own"], second: ["difference", "asymmetry", "none"] };

/** The selection; `set` changes it and tells the listener what has changed. */
export class View {
  constructor(page) {
    this.page = page;
    this.listener = () => {};
    this.reset();
  }

  reset() {
    const [start, goal] = this.page.task;
    Object.assign(this, { goal, start, direction: "to", scale: "shared", second: "difference", run: "", step: null });
  }

  /** The fixed end of the distances that are shown. */
  get anchor() {
    return this.direction === "to" ? this.goal : this.start;
  }

  /** (from, to) of the distance that a cell shows. */
  pair(state) {
    return this.direction === "to" ? [state, this.goal] : [this.start, state];
  }

  set(changes) {
    if ("goal" in changes) changes.goal = this.page.world.nearestGoal(changes.goal);
    Object.assign(this, changes);
    window.history.replaceState(null, "", `#${this.fragment()}`);
    this.listener(changes);
  }

  /** The selection as text; only what differs from the first view, apart from the task. */
  fragment() {
    const { world } = this.page;
    const place = (state) => (world.drawing ? world.cell(state).join() : String(state));
    const parts = { goal: place(this.goal), start: place(this.start) };
    if (this.run) parts.run = this.run;
    for (const [key, [usual]] of Object.entries(CHOICES)) if (this[key] !== usual) parts[key] = this[key];
    if (this.step !== null) parts.step = String(this.step);
    return new URLSearchParams(parts).toString().replaceAll("%2C", ",");
  }

  /** Restore a selection; parts that name nothing in this page are ignored, and returned. */
  restore(fragment) {
    this.reset();
    const ignored = [];
    for (const [key, text] of new URLSearchParams(fragment.replace(/^#/, ""))) {
      const value = this.parse(key, text);
      if (value === undefined) ignored.push(`${key}=${text}`);
      else this[key] = value;
    }
    this.listener({ restored: true });
    return ignored;
  }

  parse(key, text) {
    const { world, runs, steps } = this.page;
    if (key === "goal" || key === "start") {
      const state = world.drawing ? world.stateAt(...text.split(",").map(Number)) : Number(text);
      if (!(Number.isInteger(state) && state >= 0 && state < world.states)) return undefined;
      return key === "goal" ? world.nearestGoal(state) : state;
    }
    if (key === "run") return runs.some((run) => run.name === text) ? text : undefined;
    if (key === "step") return steps.includes(Number(text)) ? Number(text) : undefined;
    return CHOICES[key]?.includes(text) ? text : undefined;
  }

  /** The planners that are shown, each with its snapshot. */
  shown() {
    return this.page.planners
      .filter((planner) => planner.exact || !this.run || planner.name === this.run)
      .map((planner) => ({ planner, snapshot: planner.exact ? planner.snapshots[0] : planner.at(this.step) }));
  }
}
