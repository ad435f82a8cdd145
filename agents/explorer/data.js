/** The contents of the page: the world, and the tables of every planner, decoded. */

/** Bytes from base64 text that was compressed with zlib. */
async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The inverse of `tables.pack` in Python: byte planes, then differences of neighbours. */
async function unpack(text, ArrayType) {
  const bytes = await inflate(text);
  const size = ArrayType.BYTES_PER_ELEMENT;
  const values = new ArrayType(bytes.length / size);
  let sum = 0;
  for (let i = 0; i < values.length; i++) {
    for (let plane = 0; plane < size; plane++) sum += bytes[plane * values.length + i] << (8 * plane);
    values[i] = sum; // modulo the size of the type
    sum = values[i];
  }
  return values;
}

/** Steps that remain after each action: one value per goal, action and state. */
class StepTable {
  constructor(page, codes, { digits, offset }) {
    this.page = page;
    this.codes = codes;
    this.digits = digits;
    this.unit = 10 ** digits;
    this.offset = offset;
  }

  /** Infinity where there is no finite value, NaN where the goal is not stored. */
  steps(state, goal, action) {
    const { goalIndex, states, numActions } = this.page.world;
    if (goalIndex[goal] < 0) return NaN;
    const code = this.codes[(goalIndex[goal] * numActions + action) * states + state];
    return code === this.page.codes.infinite ? Infinity : (code + this.offset) / this.unit;
  }

  /** One step by the best action and those that remain after it. */
  distance(state, goal) {
    if (state === goal) return 0;
    let best = Infinity;
    for (let action = 0; action < this.page.world.numActions; action++) {
      const steps = this.steps(state, goal, action);
      if (Number.isNaN(steps)) return NaN;
      best = Math.min(best, steps);
    }
    return best + 1;
  }

  /** A number of steps as text, with the digits that are stored. */
  show(value) {
    if (Number.isNaN(value)) return "–";
    if (!Number.isFinite(value)) return "∞";
    const most = (this.page.codes.beyond + this.offset) / this.unit;
    return (value >= most ? "≥" : "") + minus(value.toFixed(this.digits));
  }
}

/** Text with a typographic minus sign. */
export function minus(text) {
  return text.replace("-", "−");
}

/** The states, how actions change them, and where they lie. */
class World {
  constructor({ name, states, actions, drawing, observations }, transitions, goals) {
    Object.assign(this, { name, states, actions, drawing, observations, transitions, goals });
    this.numActions = actions.length;
    this.goalIndex = new Int32Array(states).fill(-1);
    goals.forEach((goal, index) => (this.goalIndex[goal] = index));
    this.doors = new Map(drawing ? drawing.doors : []);
    this.stateAtCell = new Map(drawing ? drawing.cells.map((cell, state) => [cell.join(), state]) : []);
  }

  next(state, action) {
    return this.transitions[state * this.numActions + action];
  }

  /** The direction (dx, dy) of an action: a move of its own, or towards the cell that it leads to. */
  direction(state, action) {
    if (this.drawing.moves) return this.drawing.moves[action];
    const [x, y] = this.cell(state);
    const [u, v] = this.cell(this.next(state, action));
    const length = Math.hypot(u - x, v - y) || 1;
    return [(u - x) / length, (v - y) / length];
  }

  stateAt(x, y) {
    return this.stateAtCell.get(`${x},${y}`) ?? -1;
  }

  cell(state) {
    return this.drawing.cells[state];
  }

  /** How a state is called in text. */
  label(state) {
    return this.drawing ? `(${this.cell(state).join(", ")})` : `state ${state}`;
  }

  /** The stored goal nearest to a state: itself in worlds whose states are all stored. */
  nearestGoal(state) {
    if (this.goalIndex[state] >= 0) return state;
    const [x, y] = this.drawing ? this.cell(state) : [state, 0];
    const gap = (goal) => {
      const [u, v] = this.drawing ? this.cell(goal) : [goal, 0];
      return Math.abs(x - u) + Math.abs(y - v);
    };
    return this.goals.reduce((best, goal) => (gap(goal) < gap(best) ? goal : best));
  }
}

/** The ground truth or a run, as it was at some training steps. */
class Planner {
  constructor({ name, description, exact }, snapshots) {
    Object.assign(this, { name, description, exact, snapshots });
  }

  /** The newest snapshot up to a training step, the last one without a step, or the first if all are newer. */
  at(step) {
    const past = this.snapshots.filter((snapshot) => step === null || snapshot.step <= step);
    return past.at(-1) ?? this.snapshots[0];
  }
}

/** Decode everything that Python embedded. */
export async function readPage(data) {
  const { transitions, ...facts } = data.world;
  const page = { task: data.task, maxSteps: data.maxSteps, codes: data.codes, colors: data.colors };
  page.world = new World(facts, transitions && (await unpack(transitions, Uint16Array)), data.goals);
  const readSnapshot = async ({ step, steps, greedy }) => ({
    step,
    table: steps && new StepTable(page, await unpack(steps.data, Uint16Array), steps),
    greedy: await unpack(greedy, Uint8Array),
  });
  page.planners = await Promise.all(
    data.planners.map(async (planner) => new Planner(planner, await Promise.all(planner.snapshots.map(readSnapshot)))),
  );
  page.exact = page.planners.find((planner) => planner.exact)?.snapshots[0].table ?? null;
  page.runs = page.planners.filter((planner) => !planner.exact);
  page.steps = [...new Set(page.runs.flatMap((run) => run.snapshots.map((snapshot) => snapshot.step)))].sort(
    (a, b) => a - b,
  );
  return page;
}

/** The greedy action of a snapshot. */
export function greedyAction(page, snapshot, state, goal) {
  return snapshot.greedy[page.world.goalIndex[goal] * page.world.states + state];
}
