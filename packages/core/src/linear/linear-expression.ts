import { Automaton, type ReadText } from "./automaton.ts";
import { parseExpression, type Assertion } from "./parse-expression.ts";

/** The time of a match is proportional to the text, whatever the text and the expression hold. */
export interface LinearExpression {
  readonly source: string;
  readonly flags: string;
  test(text: string): boolean;
  /** Returns the start of the first match, like `String.search`, or -1 without a match. */
  search(text: string): number;
  /** Returns the end of the last match, or -1 without a match. With `^` it is the end of the longest match there. */
  searchEnd(text: string): number;
}

const mostAssertions = 32;
const wordCharacter = /^\w$/;
const lineEnd = /^[\n\r\u2028\u2029]$/;

/**
 * Creates an expression for text of unknown origin from the syntax of `RegExp`. `RegExp` tries one way after the other
 * and takes hours for some texts; this expression follows all ways at once. It finds whether and where a match exists,
 * but not the content of its groups.
 * @param source without back references, named groups and `\p`
 * @param flags `i`, `m`, both or none
 */
export function linearExpression(source: string, flags: string = ""): LinearExpression {
  // The expression is built on its first use, because most rules are never reached.
  let built: BuiltExpression | null = null;
  const get = (): BuiltExpression => (built ??= new BuiltExpression(source, flags));
  return {
    source,
    flags,
    test: (text) => get().test(text),
    search: (text) => get().search(text),
    searchEnd: (text) => get().searchEnd(text),
  };
}

class BuiltExpression {
  readonly #flags: string;
  readonly #atoms: readonly (RegExp | string)[];
  readonly #assertions: readonly Assertion[];
  readonly #lookarounds: readonly (Automaton | null)[];
  readonly #forward: Automaton;
  readonly #backward: () => Automaton;
  readonly #classOfCode = new Map<number, number>();
  readonly #classOfAtoms = new Map<string, number>();
  readonly #atomsOfClass: Uint8Array[] = [];

  constructor(source: string, flags: string) {
    const { root, atoms, assertions } = parseExpression(source);
    if (assertions.length > mostAssertions) throw new SyntaxError(`More than ${mostAssertions} assertions: ${source}`);
    this.#flags = flags;
    const ignoresCase = flags.includes("i");
    // Each atom reads one character. Most atoms are plain characters, which are compared faster.
    this.#atoms = atoms.map((atom) =>
      !ignoresCase && /^[\w ]$/.test(atom) ? atom : new RegExp(`^${atom}$`, ignoresCase ? "i" : ""),
    );
    this.#assertions = assertions;
    this.#lookarounds = assertions.map((assertion) =>
      "node" in assertion
        ? new Automaton(assertion.node, assertion.kind === "behind" ? "forward" : "backward", this.#atomsOfClass)
        : null,
    );
    this.#forward = new Automaton(root, "forward", this.#atomsOfClass);
    let backward: Automaton | null = null;
    this.#backward = () => (backward ??= new Automaton(root, "backward", this.#atomsOfClass));
  }

  test(text: string): boolean {
    let isFound = false;
    this.#forward.run(this.#read(text), () => {
      isFound = true;
      return false;
    });
    return isFound;
  }

  search(text: string): number {
    let first = -1;
    this.#backward().run(this.#read(text), (position) => {
      first = position;
      return true;
    });
    return first;
  }

  searchEnd(text: string): number {
    let last = -1;
    this.#forward.run(this.#read(text), (position) => {
      last = position;
      return true;
    });
    return last;
  }

  #read(text: string): ReadText {
    const classes = new Uint16Array(text.length);
    for (let index = 0; index < text.length; index++) classes[index] = this.#classOf(text.charCodeAt(index));
    const read = { classes, holds: new Uint32Array(text.length + 1) };
    this.#assertions.forEach((assertion, index) => this.#assert(text, read, assertion, index));
    return read;
  }

  /**
   * Characters that no part of the expression distinguishes share a class, so that the automaton caches one move for
   * all of them.
   */
  #classOf(code: number): number {
    const known = this.#classOfCode.get(code);
    if (known !== undefined) return known;
    const character = String.fromCharCode(code);
    const atoms = Uint8Array.from(this.#atoms, (atom) =>
      (typeof atom === "string" ? atom === character : atom.test(character)) ? 1 : 0,
    );
    const key = atoms.join("");
    let found = this.#classOfAtoms.get(key);
    if (found === undefined) {
      found = this.#atomsOfClass.push(atoms) - 1;
      this.#classOfAtoms.set(key, found);
    }
    this.#classOfCode.set(code, found);
    return found;
  }

  /** Marks the positions at which an assertion holds. The assertions inside of it are already marked. */
  #assert(text: string, read: ReadText, assertion: Assertion, index: number): void {
    const bit = 1 << index;
    const { holds } = read;
    if ("node" in assertion) {
      if (assertion.isNegated) for (let position = 0; position <= text.length; position++) holds[position]! |= bit;
      this.#lookarounds[index]?.run(read, (position) => {
        if (assertion.isNegated) holds[position]! &= ~bit;
        else holds[position]! |= bit;
        return true;
      });
      return;
    }
    for (let position = 0; position <= text.length; position++) {
      if (this.#holdsAt(text, position, assertion.kind)) holds[position]! |= bit;
    }
  }

  #holdsAt(text: string, position: number, kind: "start" | "end" | "boundary" | "no-boundary"): boolean {
    const [before = "", after = ""] = [text[position - 1], text[position]];
    if (kind === "start") return position === 0 || (this.#flags.includes("m") && lineEnd.test(before));
    if (kind === "end") return position === text.length || (this.#flags.includes("m") && lineEnd.test(after));
    return (wordCharacter.test(before) !== wordCharacter.test(after)) === (kind === "boundary");
  }
}
