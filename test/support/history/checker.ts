/**
 * Linearizability: is there one order of all operations, each at a moment between its invocation and its return, in
 * which a sequential model gives every answer that was given? A Wing–Gong search with Lowe's memory of (operations
 * done, state), so that no position is looked at twice.
 *
 * For histories of leases call `judge` of judge.ts: `judge(operations, log?)` returns `{ type: 'holds' }`,
 * `{ type: 'violated', faults }` with texts for people, or `{ type: 'unknown' }` when the search ran out of steps, which
 * is never a pass. `operations` is a list of {@link file://./operations.ts} in any order; `log` says which request was
 * granted which token. This file knows nothing of leases: `search` takes any {@link Model}.
 *
 * The memory holds a 64-bit hash of the operations done. A collision could refuse a history that holds, never the
 * reverse: a refused history is worth a look in any case.
 */

/** When an operation ran, on one monotone clock. */
export interface Timed {
  readonly invokedAt: number;
  /** Undefined for an operation of unknown outcome: it takes effect at some time after its invocation, or never. */
  readonly returnedAt: number | undefined;
}

/** What operations do, one at a time. States are values: never changed. */
export interface Model<State, Op> {
  readonly initial: State;
  /**
   * The state after `operation`, undefined if it cannot give its answer in `state`. The same object says that it only
   * reads; such an operation is taken as soon as it can be, which closes no other way.
   */
  apply(state: State, operation: Op): State | undefined;
  /**
   * The states that may follow by themselves at a moment not later than `latest`. Whatever comes after such a step lies
   * after it in time, so a step with an earliest moment is offered if that is not above `latest`.
   */
  internal(state: State, latest: number): readonly State[];
  /** Equal exactly for states that behave equally. */
  key(state: State): string;
}

/** What a search came to. */
export type Found<State, Op> =
  | { readonly type: 'linearizable' }
  /** There is no such order. The longest attempt ended in `state`, and `operation` is the first that could not follow. */
  | { readonly type: 'impossible'; readonly state: State; readonly operation: Op; readonly done: number }
  /** More than `budget` applications of the model. */
  | { readonly type: 'unknown' };

/** Looks for an order of `operations`. `budget`: how many times the model may be asked, at most. */
export function search<State, Op extends Timed>(
  model: Model<State, Op>,
  operations: readonly Op[],
  budget: number,
): Found<State, Op> {
  const open = new OpenOperations(operations);
  const seen = new Set<string>();
  const frames: Frame<State>[] = [];
  let steps = 0;
  let best: { state: State; operation: Op; done: number } | undefined;
  let next: { state: State; taken: number | undefined } | undefined = { state: model.initial, taken: undefined };
  while (next !== undefined) {
    const { state, taken } = next;
    const mark = open.done.length;
    if (taken !== undefined) open.take(taken);
    const ways: Way<State>[] = [];
    for (let index = open.first; open.canBeNext(index); index = open.after(index)) {
      steps++;
      const operation = at(operations, index);
      const after = model.apply(state, operation);
      if (after === undefined) continue;
      if (after !== state) ways.push({ state: after, taken: index });
      else if (operation.returnedAt !== undefined) open.take(index);
    }
    const blocked = open.nextToReturn;
    if (blocked === undefined) return { type: 'linearizable' };
    if (steps > budget) return { type: 'unknown' };
    const key = `${open.hash} ${model.key(state)}`;
    if (!seen.has(key)) {
      seen.add(key);
      if (best === undefined || open.done.length >= best.done) {
        best = { state, operation: at(operations, blocked), done: open.done.length };
      }
      for (const after of model.internal(state, open.latest)) ways.push({ state: after, taken: undefined });
      steps++;
    } else ways.length = 0;
    frames.push({ mark, ways, tried: 0 });
    next = nextWay(frames, open);
  }
  if (best === undefined) return { type: 'linearizable' };
  return { type: 'impossible', ...best };
}

/** One way on: an operation that is taken, or a step of the model by itself. */
interface Way<State> {
  readonly state: State;
  readonly taken: number | undefined;
}

interface Frame<State> {
  /** How many operations were done before this position. */
  readonly mark: number;
  readonly ways: readonly Way<State>[];
  tried: number;
}

function nextWay<State>(frames: Frame<State>[], open: OpenOperations): Way<State> | undefined {
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    const way = frame.ways[frame.tried++];
    if (way !== undefined) return way;
    open.putBack(frame.mark);
    frames.pop();
  }
  return undefined;
}

/** The operations that are not done, in two doubly linked lists: by invocation, and by return those that returned. */
class OpenOperations {
  /** Indices in the order in which they were taken. */
  readonly done: number[] = [];
  readonly #operations: readonly Timed[];
  readonly #byInvocation: Links;
  readonly #byReturn: Links;
  #high = 0;
  #low = 0;

  constructor(operations: readonly Timed[]) {
    this.#operations = operations;
    const indices = operations.map((_, index) => index);
    const invokedAt = (index: number): number => at(operations, index).invokedAt;
    const returnedAt = (index: number): number => at(operations, index).returnedAt ?? Infinity;
    const end = operations.length;
    this.#byInvocation = new Links(
      indices.toSorted((left, right) => invokedAt(left) - invokedAt(right)),
      end,
    );
    const returned = indices.filter((index) => at(operations, index).returnedAt !== undefined);
    this.#byReturn = new Links(
      returned.sort((left, right) => returnedAt(left) - returnedAt(right)),
      end,
    );
  }

  /** The open operation that was invoked first; `operations.length` for none. */
  get first(): number {
    return this.#byInvocation.after(this.#operations.length);
  }

  /** The open operation invoked after `index`, which may have been taken just now. */
  after(index: number): number {
    return this.#byInvocation.after(index);
  }

  /** The open operation that returned first: everything that comes next comes before its return. */
  get nextToReturn(): number | undefined {
    const index = this.#byReturn.after(this.#operations.length);
    return index === this.#operations.length ? undefined : index;
  }

  /** The moment before which the next step must be. */
  get latest(): number {
    const index = this.nextToReturn;
    return index === undefined ? Infinity : (at(this.#operations, index).returnedAt ?? Infinity);
  }

  /** False at the end of the list and for operations invoked after another open one returned. */
  canBeNext(index: number): boolean {
    return index < this.#operations.length && at(this.#operations, index).invokedAt <= this.latest;
  }

  take(index: number): void {
    this.done.push(index);
    this.#byInvocation.remove(index);
    if (at(this.#operations, index).returnedAt !== undefined) this.#byReturn.remove(index);
    this.#toggle(index);
  }

  /** Undoes every `take` beyond the first `mark`, the last first. */
  putBack(mark: number): void {
    while (this.done.length > mark) {
      const index = this.done.pop();
      if (index === undefined) return;
      this.#byInvocation.putBack(index);
      if (at(this.#operations, index).returnedAt !== undefined) this.#byReturn.putBack(index);
      this.#toggle(index);
    }
  }

  get hash(): string {
    return `${this.done.length} ${this.#high} ${this.#low}`;
  }

  #toggle(index: number): void {
    this.#high ^= mixed(index, 0x9e3779b9);
    this.#low ^= mixed(index, 0x85ebca6b);
  }
}

/** A circular list of indices below `end`, which stands for both its ends. */
class Links {
  readonly #next: Int32Array;
  readonly #previous: Int32Array;

  constructor(order: readonly number[], end: number) {
    this.#next = new Int32Array(end + 1);
    this.#previous = new Int32Array(end + 1);
    let last = end;
    for (const index of [...order, end]) {
      this.#next[last] = index;
      this.#previous[index] = last;
      last = index;
    }
  }

  after(index: number): number {
    return at(this.#next, index);
  }

  /** Keeps the links of what is removed, for `after` and `putBack`. */
  remove(index: number): void {
    const next = at(this.#next, index);
    const previous = at(this.#previous, index);
    this.#next[previous] = next;
    this.#previous[next] = previous;
  }

  putBack(index: number): void {
    this.#next[at(this.#previous, index)] = index;
    this.#previous[at(this.#next, index)] = index;
  }
}

/** 32 bits that look like chance: the finaliser of MurmurHash 3. */
function mixed(value: number, seed: number): number {
  let bits = (value + 1) ^ seed;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return bits ^ (bits >>> 16);
}

function at<T>(list: ArrayLike<T>, index: number): T {
  const value = list[index];
  if (value === undefined) throw new Error(`there is no element ${index} of ${list.length}`);
  return value;
}
