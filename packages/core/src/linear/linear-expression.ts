import { Automaton, type ReadText } from "./automaton.ts";
import { parseExpression, type Assertion } from "./parse-expression.ts";

/** An expression that takes time in proportion to the text, whatever stands in either. */
export interface LinearExpression {
  readonly source: string;
  readonly flags: string;
  /** True when `text` holds a match. */
  test(text: string): boolean;
  /** Where the first match starts, as `String.search` gives it: -1 when there is none. */
  search(text: string): number;
}

const mostAssertions = 32;
const wordCharacter = /^\w$/;
const lineEnd = /^[\n\r\u2028\u2029]$/;

/**
 * Makes an expression for text of unknown origin out of the syntax of `RegExp`. `RegExp` tries one way after the other
 * and takes hours for some texts; this one follows all ways at once. It says whether and where there is a match, but
 * not what its groups hold.
 *
 * @param source without back references, named groups and `\p`
 * @param flags `i`, `m`, both or none
 */
export function linearExpression(source: string, flags: string = ""): LinearExpression {
  // Built on the first use: most rules are never reached.
  let built: BuiltExpression | null = null;
  const get = (): BuiltExpression => (built ??= new BuiltExpression(source, flags));
  return { source, flags, test: (text) => get().test(text), search: (text) => get().search(text) };
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
    // Each reads one character only. Most stand for themselves, and comparing them is quicker.
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

  #read(text: string): ReadText {
    const classes = new Uint16Array(text.length);
    for (let index = 0; index < text.length; index++) classes[index] = this.#classOf(text.charCodeAt(index));
    const read = { classes, holds: new Uint32Array(text.length + 1) };
    this.#assertions.forEach((assertion, index) => this.#assert(text, read, assertion, index));
    return read;
  }

  /** Characters that no part of the expression distinguishes belong to one class. */
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

  /** Marks the positions at which an assertion holds. Those inside of it are marked already. */
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
