import type { ExpressionNode } from "./parse-expression.ts";

export interface ReadText {
  readonly classes: Uint16Array;
  /** Each position, from 0 to the length of the text, has one bit for each assertion. */
  readonly holds: Uint32Array;
}

interface SubsetState {
  readonly atoms: readonly number[];
  readonly isMatch: boolean;
  readonly next: Map<number, SubsetState>;
}

/** Beyond this number the states are dropped and created again, so that no text makes the cache grow. */
const mostStates = 2000;

/**
 * Moves a set of positions in the expression over the text, one character at a time. The work for a character never
 * exceeds the number of parts of the expression. Sets are cached, because they recur.
 */
export class Automaton {
  readonly #direction: "forward" | "backward";
  /** Each state has the atom that it reads, or -1, the assertion that it needs, or -1, and its targets. */
  readonly #atoms: number[] = [];
  readonly #assertions: number[] = [];
  readonly #targets: number[][] = [];
  readonly #start: number;
  readonly #match: number;
  readonly #atomsOfClass: readonly Uint8Array[];
  readonly #subsets = new Map<string, SubsetState>();
  #usedBits = 0;
  /** Tests read this count of examined positions and moves, to check that the work stays linear. */
  steps = 0;

  constructor(node: ExpressionNode, direction: "forward" | "backward", atomsOfClass: readonly Uint8Array[]) {
    this.#direction = direction;
    this.#atomsOfClass = atomsOfClass;
    this.#match = this.#state(-1, -1, []);
    this.#start = this.#compile(node, this.#match);
  }

  /**
   * Calls `matched` for every position at which a match ends (forward) or starts (backward), until `matched` returns
   * false.
   */
  run(text: ReadText, matched: (position: number) => boolean): void {
    const length = text.classes.length;
    const isForward = this.#direction === "forward";
    let position = isForward ? 0 : length;
    let state = this.#subset([this.#start], text.holds[position] as number);
    for (;;) {
      if (state.isMatch && !matched(position)) return;
      if (position === (isForward ? length : 0)) return;
      const read = text.classes[isForward ? position : position - 1] as number;
      position += isForward ? 1 : -1;
      state = this.#move(state, read, text.holds[position] as number);
    }
  }

  #move(from: SubsetState, read: number, holds: number): SubsetState {
    const key = read * 2 ** 32 + ((holds & this.#usedBits) >>> 0);
    const known = from.next.get(key);
    this.steps += 1;
    if (known !== undefined) return known;
    this.steps += from.atoms.length;
    const atoms = this.#atomsOfClass[read] as Uint8Array;
    const reached: number[] = [];
    for (const state of from.atoms) {
      if (atoms[this.#atoms[state] as number] === 1) reached.push((this.#targets[state] as number[])[0] as number);
    }
    // A match may start at every position, so the start is always added.
    reached.push(this.#start);
    const to = this.#subset(reached, holds);
    from.next.set(key, to);
    return to;
  }

  /** Returns the states that are reachable from `states` without reading a character. */
  #subset(states: readonly number[], holds: number): SubsetState {
    const seen = new Set<number>();
    const open = [...states];
    const atoms: number[] = [];
    for (let state = open.pop(); state !== undefined; state = open.pop()) {
      if (seen.has(state)) continue;
      seen.add(state);
      this.steps += 1;
      const assertion = this.#assertions[state] as number;
      if ((this.#atoms[state] as number) >= 0) atoms.push(state);
      else if (assertion < 0 || ((holds >>> assertion) & 1) === 1) open.push(...(this.#targets[state] as number[]));
    }
    atoms.sort((a, b) => a - b);
    const isMatch = seen.has(this.#match);
    const key = `${isMatch ? "!" : ""}${atoms.join()}`;
    let subset = this.#subsets.get(key);
    if (subset === undefined) {
      if (this.#subsets.size >= mostStates) this.#subsets.clear();
      subset = { atoms, isMatch, next: new Map() };
      this.#subsets.set(key, subset);
    }
    return subset;
  }

  #state(atom: number, assertion: number, targets: number[]): number {
    this.#atoms.push(atom);
    this.#assertions.push(assertion);
    return this.#targets.push(targets) - 1;
  }

  /** Adds the states of `node` in front of `next`, and returns the first of them. */
  #compile(node: ExpressionNode, next: number): number {
    switch (node.type) {
      case "atom":
        return this.#state(node.atom, -1, [next]);
      case "assertion":
        this.#usedBits |= 1 << node.assertion;
        return this.#state(-1, node.assertion, [next]);
      case "choice":
        return this.#state(
          -1,
          -1,
          node.options.map((option) => this.#compile(option, next)),
        );
      case "sequence": {
        const order = this.#direction === "forward" ? node.items.toReversed() : node.items;
        return order.reduce((after, item) => this.#compile(item, after), next);
      }
      case "repeat":
        return this.#repeat(node.item, node.least, node.most, next);
    }
  }

  #repeat(item: ExpressionNode, least: number, most: number, next: number): number {
    let first = next;
    if (most === Number.POSITIVE_INFINITY) {
      const loop = this.#state(-1, -1, [next]);
      (this.#targets[loop] as number[]).push(this.#compile(item, loop));
      first = loop;
    } else {
      for (let count = least; count < most; count++) first = this.#state(-1, -1, [next, this.#compile(item, first)]);
    }
    for (let count = 0; count < least; count++) first = this.#compile(item, first);
    return first;
  }
}
