import { setImmediate as nextTurn } from "node:timers/promises";
import { endOfString } from "./wire/index.ts";

export interface StoredId {
  /** Holds the member name in lower case, because parsers disagree on whether case counts. */
  readonly name: string;
  /** Is null when the value is not a text. Such a value cannot be checked, so it is refused. */
  readonly id: string | null;
  readonly top: string;
}

const idForm = /(?:^|_)ids?$/;
const idNames: ReadonlySet<string> = new Set(["container", "conversation", "thread"]);

/**
 * These ids refer to parts of the request or to the client's own objects, so they cannot reach a resource at the
 * provider.
 */
const ownNames: ReadonlySet<string> = new Set([
  "tool_use_id",
  "tool_call_id",
  "call_id",
  "tool_id",
  "tab_id",
  "download_id",
  "caller_id",
  "approval_request_id",
  "connector_id",
]);

/**
 * These members have free content, such as schemas, examples and client metadata. No API resolves an id inside them, so
 * they are skipped.
 */
const freeNames: ReadonlySet<string> = new Set([
  "input_schema",
  "input_examples",
  "parameters",
  "schema",
  "json_schema",
  "metadata",
  "logit_bias",
  "headers",
  "arguments",
]);

/** The id of a tool call only links it to its result, and the model writes the input. Neither needs a check. */
const toolUses: ReadonlySet<string> = new Set(["tool_use", "server_tool_use", "mcp_tool_use"]);
/** These objects have no type, and their ids only link two parts of one request. They need no check. */
const tiedNames: ReadonlySet<string> = new Set(["tool_calls", "pending_safety_checks", "acknowledged_safety_checks"]);

/**
 * Maps an object type to the member that makes the object complete. An object with an id and without that member may be
 * a reference to a stored resource.
 */
const contentOf: ReadonlyMap<string, string> = new Map([
  ["message", "content"],
  ["function", "function"],
  ["custom", "custom"],
  ["function_call", "arguments"],
  ["function_call_output", "output"],
  ["custom_tool_call", "input"],
  ["custom_tool_call_output", "output"],
  ["local_shell_call", "action"],
  ["local_shell_call_output", "output"],
  ["shell_call", "action"],
  ["shell_call_output", "output"],
  ["apply_patch_call", "operation"],
  ["apply_patch_call_output", "status"],
  ["computer_call", "action"],
  ["computer_call_output", "output"],
  ["mcp_call", "arguments"],
  ["mcp_list_tools", "tools"],
  ["mcp_approval_request", "arguments"],
  ["reasoning", "encrypted_content"],
  ["compaction", "encrypted_content"],
  ["image_generation_call", "result"],
]);

interface Frame {
  readonly name: string;
  readonly top: string;
  readonly isFree: boolean;
  key: string;
  readonly keys: Set<string>;
  readonly types: string[];
  /** Lists the members with a value that is not empty, because an empty member does not make an object complete. */
  readonly filled: Set<string>;
  readonly own: { readonly name: string; readonly id: string | null }[];
  /** Holds the ids of nested objects. They count only after the type of this object is known. */
  readonly inner: { readonly via: string; readonly found: StoredId }[];
}

const stepChars = 256 * 1024;

/**
 * Finds every value of a body that names a resource stored at the provider. Known members follow the types of the SDKs;
 * other members are judged by name. Null when the text is not one JSON object or repeats a member name, because parsers
 * disagree on which of the two counts.
 */
export async function storedIdsIn(text: string): Promise<readonly StoredId[] | null> {
  const walk = new Walk(text);
  while (walk.run(stepChars)) await nextTurn();
  return walk.found;
}

const openings: Readonly<Record<string, string>> = { "{": "}", "[": "]" };
const wordForm = /^(?:true|false|null|-?\d[\d.eE+-]*)$/;

/** Reads a text in one pass. `JSON.parse` is not used, because it hides repeated members. */
class Walk {
  found: readonly StoredId[] | null = null;
  readonly #text: string;
  readonly #frames: Frame[] = [];
  readonly #open: string[] = [];
  #at: number;
  #expects: "value" | "first-name" | "name" | "first-value" | "next" = "value";

  constructor(text: string) {
    this.#text = text;
    this.#at = text.startsWith("\uFEFF") ? 1 : 0;
  }

  run(chars: number): boolean {
    const until = this.#at + chars;
    while (this.#at < until) {
      const isGood = this.#step();
      if (!isGood) {
        this.found = null;
        return false;
      }
      if (this.found !== null) return this.#isBlankToEnd() ? false : this.#fail();
    }
    return true;
  }

  #fail(): false {
    this.found = null;
    return false;
  }

  #isBlankToEnd(): boolean {
    this.#skipBlank();
    return this.#at === this.#text.length;
  }

  #skipBlank(): void {
    while (" \t\n\r".includes(this.#text[this.#at] ?? "x")) this.#at++;
  }

  #step(): boolean {
    this.#skipBlank();
    const char = this.#text[this.#at];
    if (char === undefined) return false;
    switch (this.#expects) {
      case "first-name":
        return char === "}" ? this.#close(char) : this.#name();
      case "name":
        return this.#name();
      case "first-value":
        return char === "]" ? this.#close(char) : this.#value(char);
      case "value":
        return this.#value(char);
      case "next":
        if (char !== ",") return this.#close(char);
        this.#at++;
        this.#expects = this.#open.at(-1) === "}" ? "name" : "value";
        return true;
    }
  }

  #name(): boolean {
    const end = endOfString(this.#text, this.#at);
    const name = end === -1 ? null : parsed(this.#text.slice(this.#at, end));
    const frame = this.#frames.at(-1);
    if (typeof name !== "string" || frame === undefined) return false;
    this.#at = end;
    this.#skipBlank();
    if (this.#text[this.#at] !== ":") return false;
    this.#at++;
    if (!frame.isFree && frame.keys.has(name)) return false;
    frame.keys.add(name);
    frame.key = name;
    this.#expects = "value";
    return true;
  }

  #value(char: string): boolean {
    const end = openings[char];
    const frame = this.#frames.at(-1);
    if (end !== undefined) {
      // The APIs accept only an object as the body, so any other value is invalid.
      if (frame === undefined && char !== "{") return false;
      this.#at++;
      this.#open.push(end);
      if (char === "{") this.#frames.push(this.#frameIn(frame));
      this.#expects = char === "{" ? "first-name" : "first-value";
      return true;
    }
    if (frame === undefined) return false;
    const to = char === '"' ? endOfString(this.#text, this.#at) : this.#endOfWord();
    if (to === -1) return false;
    const from = this.#at;
    this.#at = to;
    this.#expects = "next";
    return this.#take(frame, char === '"', from, to);
  }

  #endOfWord(): number {
    let at = this.#at;
    while (at < this.#text.length && !' \t\n\r,]}"'.includes(this.#text[at] as string) && at - this.#at < 64) at++;
    return wordForm.test(this.#text.slice(this.#at, at)) ? at : -1;
  }

  #frameIn(frame: Frame | undefined): Frame {
    const name = frame?.key.toLowerCase() ?? "";
    return {
      name,
      top: this.#frames.length === 1 ? name : (frame?.top ?? ""),
      isFree: frame !== undefined && (frame.isFree || freeNames.has(name)),
      key: "",
      keys: new Set(),
      types: [],
      filled: new Set(),
      own: [],
      inner: [],
    };
  }

  #take(frame: Frame, isText: boolean, from: number, to: number): boolean {
    if (frame.isFree) return true;
    const name = frame.key.toLowerCase();
    const isNull = this.#text.startsWith("null", from);
    // An empty text must not make an object complete, because a reference could carry one.
    if (!isNull && to - from > 2) frame.filled.add(name);
    if (name === "type") frame.types.push(isText ? String(parsed(this.#text.slice(from, to))) : "");
    if (isNull || ownNames.has(name) || !(idForm.test(name) || idNames.has(name))) return true;
    const value = isText ? parsed(this.#text.slice(from, to)) : null;
    frame.own.push({ name, id: typeof value === "string" ? value : null });
    return true;
  }

  #close(char: string): boolean {
    if (this.#open.pop() !== char) return false;
    this.#at++;
    this.#expects = "next";
    if (char === "]") return true;
    const frame = this.#frames.pop();
    if (frame === undefined) return false;
    const isToolUse = frame.types.length > 0 && frame.types.every((type) => toolUses.has(type));
    const found = frame.inner.filter(({ via }) => !(isToolUse && via === "input")).map((inner) => inner.found);
    for (const { name, id } of frame.own)
      if (!isHarmless(frame, name)) found.push({ name, id, top: this.#frames.length === 0 ? name : frame.top });
    const parent = this.#frames.at(-1);
    // An empty object must not make its parent complete, for the same reason as an empty text.
    if (frame.keys.size > 0) parent?.filled.add(frame.name);
    if (parent === undefined) this.found = found;
    else for (const one of found) parent.inner.push({ via: parent.key.toLowerCase(), found: one });
    return true;
  }
}

function isHarmless({ name: place, types, filled }: Frame, name: string): boolean {
  // Skills of type `anthropic` are public, so their ids belong to no account.
  if (name === "skill_id") return types.length > 0 && types.every((type) => type === "anthropic");
  if (name !== "id") return false;
  if (types.length === 0) return tiedNames.has(place) || (filled.has("role") && filled.has("content"));
  return types.every((type) => toolUses.has(type) || filled.has(contentOf.get(type) ?? "\0"));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
