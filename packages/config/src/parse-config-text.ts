import { ThroughlineError } from "@throughline/core";
import type { SettingValue } from "@throughline/core/internal";
import { configRemedy, shown } from "./config-problem.ts";

/** Each value keeps the line where it starts, because errors name the line. */
export type ConfigNode =
  | { readonly type: "scalar"; readonly value: string | number | boolean | null; readonly line: number }
  | { readonly type: "list"; readonly items: readonly ConfigNode[]; readonly line: number }
  | { readonly type: "object"; readonly members: readonly ConfigMember[]; readonly line: number };

export interface ConfigMember {
  readonly key: string;
  /** The line of the key may differ from the line of its value. */
  readonly line: number;
  readonly node: ConfigNode;
}

/** Deeper nesting would overflow the stack, and no configuration needs it. */
const mostDepth = 64;

/**
 * Reads JSON as people write it. It also accepts comments, a comma after the last member, keys without quotes and
 * single quotes, because the programs that used these files accept them. A duplicate key is refused, because one of its
 * values would be ignored silently. An error names the line and does not repeat the text, because the text may hold
 * keys of providers.
 * @throws {ThroughlineError} CONFIG_INVALID with `details.line`
 */
export function parseConfigText(text: string, name: string): ConfigNode {
  return new ConfigParser(text, name).run();
}

export function valueOfNode(node: ConfigNode): SettingValue {
  if (node.type === "scalar") return node.value;
  if (node.type === "list") return node.items.map(valueOfNode);
  return Object.fromEntries(node.members.map(({ key, node: value }) => [key, valueOfNode(value)]));
}

const escapes: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", "\n": "" };
const space = /[\s\uFEFF]/;
const wordCharacter = /[\p{L}\p{N}_$]/u;
const wholeNumber = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/;

class ConfigParser {
  readonly #text: string;
  readonly #name: string;
  #at = 0;
  #line = 1;

  constructor(text: string, name: string) {
    this.#text = text;
    this.#name = name;
  }

  run(): ConfigNode {
    const node = this.#value(0);
    this.#skip();
    if (this.#at < this.#text.length) throw this.#wrong("there is more after its end");
    return node;
  }

  #value(depth: number): ConfigNode {
    this.#skip();
    const line = this.#line;
    const first = this.#text[this.#at];
    if (depth > mostDepth) throw this.#wrong("it is nested too deeply");
    if (first === "{") return { type: "object", members: this.#members(depth), line };
    if (first === "[") return { type: "list", items: this.#items(depth), line };
    if (first === '"' || first === "'") return { type: "scalar", value: this.#string(first), line };
    const number = wholeNumber.exec(this.#text.slice(this.#at, this.#at + 400))?.[0];
    if (number !== undefined) {
      this.#at += number.length;
      if (!this.#isWordEnd()) throw this.#wrong("a number is followed by letters");
      return { type: "scalar", value: Number(number), line };
    }
    const word = this.#word();
    if (word === "true" || word === "false") return { type: "scalar", value: word === "true", line };
    if (word === "null") return { type: "scalar", value: null, line };
    throw this.#wrong("a value is missing, or is text without quotes");
  }

  #members(depth: number): readonly ConfigMember[] {
    const members: ConfigMember[] = [];
    const seen = new Map<string, number>();
    this.#list("}", () => {
      const line = this.#line;
      const first = this.#text[this.#at] ?? "";
      const key = first === '"' || first === "'" ? this.#string(first) : this.#word();
      if (key === "" && first !== '"' && first !== "'") throw this.#wrong("a key is missing");
      const before = seen.get(key);
      if (before !== undefined) throw this.#wrong(`${shown(key)} stands in line ${before} already`);
      seen.set(key, line);
      this.#skip();
      if (this.#text[this.#at] !== ":") throw this.#wrong(`a colon is missing after ${shown(key)}`);
      this.#at += 1;
      members.push({ key, line, node: this.#value(depth + 1) });
    });
    return members;
  }

  #items(depth: number): readonly ConfigNode[] {
    const items: ConfigNode[] = [];
    this.#list("]", () => items.push(this.#value(depth + 1)));
    return items;
  }

  #list(end: "}" | "]", readOne: () => void): void {
    this.#at += 1;
    for (let isFirst = true; ; isFirst = false) {
      this.#skip();
      if (!isFirst && this.#text[this.#at] === ",") {
        this.#at += 1;
        this.#skip();
      } else if (!isFirst && this.#text[this.#at] !== end) {
        throw this.#wrong(`a comma or ${end} is missing`);
      }
      if (this.#text[this.#at] === end) break;
      readOne();
    }
    this.#at += 1;
  }

  #string(quote: string): string {
    let text = "";
    for (this.#at += 1; ; this.#at += 1) {
      const character = this.#text[this.#at];
      if (character === undefined || character === "\n") throw this.#wrong("a text has no closing quote");
      if (character === quote) break;
      text += character === "\\" ? this.#escape() : character;
    }
    this.#at += 1;
    return text;
  }

  #escape(): string {
    this.#at += 1;
    const character = this.#text[this.#at] ?? "";
    if (character === "\n") this.#line += 1;
    if (character !== "u") return escapes[character] ?? character;
    const digits = this.#text.slice(this.#at + 1, this.#at + 5);
    if (!/^[0-9a-f]{4}$/i.test(digits)) throw this.#wrong("\\u wants four hexadecimal digits");
    this.#at += 4;
    return String.fromCharCode(Number.parseInt(digits, 16));
  }

  #word(): string {
    const begin = this.#at;
    while (!this.#isWordEnd()) this.#at += 1;
    return this.#text.slice(begin, this.#at);
  }

  #isWordEnd(): boolean {
    return !wordCharacter.test(this.#text[this.#at] ?? "");
  }

  #skip(): void {
    for (;;) {
      const character = this.#text[this.#at] ?? "";
      const two = this.#text.slice(this.#at, this.#at + 2);
      if (character !== "" && space.test(character)) this.#pass(this.#at + 1);
      else if (two === "//") this.#pass(this.#find("\n", this.#text.length));
      else if (two === "/*") this.#pass(this.#find("*/", -1) + 2);
      else return;
    }
  }

  #find(wanted: string, missing: number): number {
    const found = this.#text.indexOf(wanted, this.#at + (wanted === "*/" ? 2 : 0));
    if (found === -1 && missing === -1) throw this.#wrong("a comment has no end");
    return found === -1 ? missing : found;
  }

  #pass(end: number): void {
    for (; this.#at < end; this.#at += 1) if (this.#text[this.#at] === "\n") this.#line += 1;
  }

  #wrong(said: string): ThroughlineError {
    const line = this.#line;
    const what = this.#at < this.#text.length ? said : "it ends before its end";
    return new ThroughlineError("CONFIG_INVALID", `${this.#name}:${line}: The configuration is not JSON: ${what}.`, {
      remedy: configRemedy,
      details: { path: this.#name, line },
    });
  }
}
