/** The fields `atom` and `assertion` are indexes into the tables of the parsed expression. */
export type ExpressionNode =
  | { readonly type: "atom"; readonly atom: number }
  | { readonly type: "assertion"; readonly assertion: number }
  | { readonly type: "sequence"; readonly items: readonly ExpressionNode[] }
  | { readonly type: "choice"; readonly options: readonly ExpressionNode[] }
  | { readonly type: "repeat"; readonly item: ExpressionNode; readonly least: number; readonly most: number };

/** Assertions inside a lookaround have lower indexes than the lookaround itself, so that they are evaluated first. */
export type Assertion =
  | { readonly kind: "start" | "end" | "boundary" | "no-boundary" }
  | { readonly kind: "ahead" | "behind"; readonly isNegated: boolean; readonly node: ExpressionNode };

export interface ParsedExpression {
  readonly root: ExpressionNode;
  /** Each source of a single character or a class occurs once. */
  readonly atoms: readonly string[];
  readonly assertions: readonly Assertion[];
}

/** Parses the syntax of `RegExp` without flags `u` and `v`, back references and named groups. */
export function parseExpression(source: string): ParsedExpression {
  // The engine's own parser rejects malformed source, so this parser only has to divide well-formed source.
  void new RegExp(source, "");
  const parser = new ExpressionParser(source);
  return { root: parser.parse(), atoms: parser.atoms, assertions: parser.assertions };
}

const lookarounds: readonly (readonly [string, "ahead" | "behind", boolean])[] = [
  ["(?=", "ahead", false],
  ["(?!", "ahead", true],
  ["(?<=", "behind", false],
  ["(?<!", "behind", true],
];

class ExpressionParser {
  readonly atoms: string[] = [];
  readonly assertions: Assertion[] = [];
  readonly #source: string;
  readonly #assertionOf = new Map<string, number>();
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  parse(): ExpressionNode {
    const node = this.#choice();
    if (this.#at < this.#source.length) this.#refuse();
    return node;
  }

  #choice(): ExpressionNode {
    const options = [this.#sequence()];
    while (this.#source[this.#at] === "|") {
      this.#at += 1;
      options.push(this.#sequence());
    }
    return options.length === 1 ? (options[0] as ExpressionNode) : { type: "choice", options };
  }

  #sequence(): ExpressionNode {
    const items: ExpressionNode[] = [];
    while (this.#at < this.#source.length && this.#source[this.#at] !== "|" && this.#source[this.#at] !== ")") {
      items.push(this.#repeated(this.#single()));
    }
    return items.length === 1 ? (items[0] as ExpressionNode) : { type: "sequence", items };
  }

  #single(): ExpressionNode {
    const start = this.#at;
    const character = this.#source[start];
    if (character === "(") return this.#group();
    if (character === "^" || character === "$") {
      this.#at += 1;
      return this.#assertion(character, { kind: character === "^" ? "start" : "end" });
    }
    if (character === "[") return this.#atom(this.#endOfClass());
    if (character !== "\\") return this.#atom(start + 1);
    const escaped = this.#source[start + 1] as string;
    if (escaped === "b" || escaped === "B") {
      this.#at += 2;
      return this.#assertion(`\\${escaped}`, { kind: escaped === "b" ? "boundary" : "no-boundary" });
    }
    // Numbered and named back references, classes of flag u, and control letters are not supported.
    if ("123456789kpPc".includes(escaped)) this.#refuse();
    return this.#atom(start + (escaped === "x" ? 4 : escaped === "u" ? 6 : 2));
  }

  #group(): ExpressionNode {
    const start = this.#at;
    const found = lookarounds.find(([opening]) => this.#source.startsWith(opening, start));
    const isPlain = this.#source.startsWith("(?:", start);
    if (found === undefined && !isPlain && this.#source[start + 1] === "?") this.#refuse();
    this.#at += found?.[0].length ?? (isPlain ? 3 : 1);
    const node = this.#choice();
    if (this.#source[this.#at] !== ")") this.#refuse();
    this.#at += 1;
    if (found === undefined) return node;
    const [, kind, isNegated] = found;
    return this.#assertion(this.#source.slice(start, this.#at), { kind, isNegated, node });
  }

  #repeated(item: ExpressionNode): ExpressionNode {
    const character = this.#source[this.#at];
    let bounds: readonly [number, number] | null = null;
    if (character === "*" || character === "+" || character === "?") {
      this.#at += 1;
      bounds = [character === "+" ? 1 : 0, character === "?" ? 1 : Number.POSITIVE_INFINITY];
    } else if (character === "{") {
      const end = this.#source.indexOf("}", this.#at);
      const [least = "", most] = this.#source.slice(this.#at + 1, end).split(",");
      this.#at = end + 1;
      bounds = [
        Number(least),
        most === undefined ? Number(least) : most === "" ? Number.POSITIVE_INFINITY : Number(most),
      ];
    }
    if (bounds === null) return item;
    // Greediness decides which match is found, not whether a match exists, so it is ignored.
    if (this.#source[this.#at] === "?") this.#at += 1;
    return { type: "repeat", item, least: bounds[0], most: bounds[1] };
  }

  #endOfClass(): number {
    let end = this.#at + 1;
    while (this.#source[end] !== "]") end += this.#source[end] === "\\" ? 2 : 1;
    return end + 1;
  }

  #atom(end: number): ExpressionNode {
    const text = this.#source.slice(this.#at, end);
    this.#at = end;
    const known = this.atoms.indexOf(text);
    return { type: "atom", atom: known === -1 ? this.atoms.push(text) - 1 : known };
  }

  #assertion(text: string, assertion: Assertion): ExpressionNode {
    const known = this.#assertionOf.get(text) ?? this.assertions.push(assertion) - 1;
    this.#assertionOf.set(text, known);
    return { type: "assertion", assertion: known };
  }

  #refuse(): never {
    throw new SyntaxError(`A linear expression cannot hold what stands at ${this.#at} of ${this.#source}`);
  }
}
