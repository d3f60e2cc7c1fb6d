import { createHash } from "node:crypto";
import { elementsOf, type MemberSpan, membersOf, type Span } from "./scan-json.ts";
import { apiReadings, isReply, type WireApi } from "./wire-api.ts";

/** A message of a request: its text, and the values that it is read from. */
export interface RequestUnit {
  /** The part of the body that holds the message, as it was sent. */
  readonly text: string;
  /** One message; several items where a reply of the Responses API lies in several. */
  readonly values: () => readonly unknown[];
}

/** A long value that stays the same from call to call: the system prompt, the tools. */
export interface RequestPart {
  /** The member of the request that holds it, such as `tools`; `system` for a system message in the list. */
  readonly name: string;
  /** The JSON of the value as it was sent. */
  readonly text: string;
  /** The first 16 hexadecimal digits of the SHA-256 of its text. */
  readonly hash: string;
}

/** The text of a request, in order: what is written out, a part, or a unit by its index. */
export type RequestPiece =
  | {
      /** Text that is written out. */
      readonly literal: string;
    }
  | {
      /** A long value that other requests share. */
      readonly part: RequestPart;
    }
  | {
      /** The index of a message in `units`. */
      readonly unit: number;
    };

/** The body of a request, cut at its messages. */
export interface SplitRequest {
  /** The API that it was read as, given by the caller. */
  readonly api: WireApi;
  /** The whole body; empty for one that was not read. */
  readonly text: string;
  /** Messages of the system at the beginning of the list, as they came. */
  readonly systemParts: readonly string[];
  /** The body in pieces; joined, they are its text. Empty for a body that was not read. */
  readonly pieces: readonly RequestPiece[];
  /** The messages behind the system's own, in order; a piece names one by its index. */
  readonly units: readonly RequestUnit[];
  /** What stands between two units, unless the pieces say otherwise. */
  readonly separator: string;
  /** A text stands in place of the list of messages. */
  readonly isPlain: boolean;
  /** The bytes of a body that was not read, see `unreadRequest`; null for every other. */
  readonly unread: Uint8Array | null;
  /** A member of the body beside its messages; undefined without one, and for one whose value is no JSON. */
  member(name: string): unknown;
  /** The text of a member's value; null without one. */
  memberText(name: string): string | null;
  /** The names of the members, in their order; one that was written twice is there twice. */
  readonly names: readonly string[];
  /**
   * The hash of a member that is a part, or of all messages of the system at the beginning; null without one. `tools` are also
   * those that the list of the Responses API begins with.
   */
  partHash(name: string): string | null;
}

/** A shorter value is written out: a reference takes as much. */
const leastPart = 160;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of a body; null where it is not UTF-8. */
export function bodyText(body: Uint8Array): string | null {
  try {
    return decoder.decode(body);
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

/** Cuts the body of a request at its messages; null for one that has none, and for text that is not a JSON object. */
export function splitRequest(api: WireApi, text: string): SplitRequest | null {
  const members = membersOf(text);
  if (members === null) return null;
  // A parser takes the last of several members with one name.
  const byName = new Map(members.map((member) => [member.name, member]));
  const reading = apiReadings[api];
  const list = byName.get(reading.list);
  const isText = (member: MemberSpan | undefined): boolean => member !== undefined && text[member.from] === '"';
  const plain = reading.plainText === null ? undefined : byName.get(reading.plainText);
  try {
    const elements = list === undefined ? null : elementsOf(text, list);
    const split = new Splitter(text, api);
    if (elements !== null && list !== undefined) split.takeMembers(members, list, () => split.takeList(elements));
    else if (plain !== undefined && isText(plain)) split.takeMembers(members, plain, () => split.takePlain(plain));
    else return null;
    return split.end(
      byName,
      members.map(({ name }) => name),
    );
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

class Splitter {
  readonly #text: string;
  readonly #api: WireApi;
  readonly #pieces: RequestPiece[] = [];
  readonly #units: RequestUnit[] = [];
  readonly #gaps = new Map<string, number>();
  readonly #system: RequestPart[] = [];
  /** The hash of the tools that stand in the list. */
  #tools: string | null = null;
  #done = 0;
  #isPlain = false;

  constructor(text: string, api: WireApi) {
    this.#text = text;
    this.#api = api;
  }

  takeMembers(members: readonly MemberSpan[], messages: MemberSpan, take: () => void): void {
    for (const member of members) {
      if (member === messages) take();
      else if (member.to - member.from >= leastPart) this.#part(member.name, member);
    }
  }

  /** A text in place of a list: one message of the user. */
  takePlain(span: Span): void {
    const value = JSON.parse(this.#text.slice(span.from, span.to)) as string;
    this.#isPlain = true;
    this.#unit(span, () => [{ role: "user", content: value }]);
  }

  takeList(elements: readonly Span[]): void {
    const { systemRoles } = apiReadings[this.#api];
    let from = 0;
    if (systemRoles.size > 0)
      for (const element of elements) {
        const { role, type = "message" } = this.#fields(element);
        if (type === "additional_tools") this.#takeTools(element);
        else if (systemRoles.has(role) && type === "message") this.#system.push(this.#part("system", element));
        else break;
        from += 1;
      }
    if (this.#api === "openai-responses") return this.#takeItems(elements.slice(from));
    for (const element of elements.slice(from)) this.#unit(element, () => [this.#valueOrText(element)]);
  }

  /** Codex has its tools in an item before the messages, under an id that differs from session to session. */
  #takeTools({ from, to }: Span): void {
    const tools = membersOf(this.#text.slice(from, to))?.findLast(({ name }) => name === "tools");
    if (tools === undefined) return;
    const span = { from: from + tools.from, to: from + tools.to };
    this.#tools ??= hashOf(this.#text.slice(span.from, span.to));
    if (span.to - span.from >= leastPart) this.#part("tools", span);
  }

  /** What the model wrote in a row is one reply, as it came. */
  #takeItems(items: readonly Span[]): void {
    let reply: Span[] = [];
    const endReply = (): void => {
      const [first] = reply;
      const last = reply.at(-1);
      const spans = reply;
      reply = [];
      if (first === undefined || last === undefined) return;
      this.#unit({ from: first.from, to: last.to }, () => spans.map((span) => this.#value(span)));
    };
    for (const item of items) {
      if (isReply(this.#api, [this.#value(item)])) {
        reply.push(item);
        continue;
      }
      endReply();
      this.#unit(item, () => [this.#value(item)]);
    }
    endReply();
  }

  /** What stands inside of a message is not judged before it is read: one that is no JSON counts as its text. */
  #valueOrText(span: Span): unknown {
    const value = parsedValue(this.#text.slice(span.from, span.to));
    return value === undefined ? this.#text.slice(span.from, span.to) : value;
  }

  #value({ from, to }: Span): unknown {
    return JSON.parse(this.#text.slice(from, to));
  }

  #fields(span: Span): Readonly<Record<string, unknown>> {
    const value = this.#value(span);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  }

  #unit({ from, to }: Span, values: () => readonly unknown[]): void {
    const gap = this.#text.slice(this.#done, from);
    this.#pieces.push({ literal: gap });
    if (this.#units.length > 0) this.#gaps.set(gap, (this.#gaps.get(gap) ?? 0) + 1);
    this.#pieces.push({ unit: this.#units.length });
    this.#units.push({ text: this.#text.slice(from, to), values });
    this.#done = to;
  }

  #part(name: string, { from, to }: Span): RequestPart {
    const text = this.#text.slice(from, to);
    const part = { name, text, hash: hashOf(text) };
    if (from > this.#done) this.#pieces.push({ literal: this.#text.slice(this.#done, from) });
    this.#pieces.push({ part });
    this.#done = to;
    return part;
  }

  end(members: ReadonlyMap<string, MemberSpan>, names: readonly string[]): SplitRequest {
    if (this.#done < this.#text.length) this.#pieces.push({ literal: this.#text.slice(this.#done) });
    const system = this.#system.map(({ hash }) => hash);
    const textOf = (name: string): string | null => {
      const member = members.get(name);
      return member === undefined ? null : this.#text.slice(member.from, member.to);
    };
    const [separator = ","] = [...this.#gaps].toSorted(([, one], [, other]) => other - one)[0] ?? [];
    return {
      api: this.#api,
      text: this.#text,
      systemParts: this.#system.map((part) => part.text),
      pieces: this.#pieces,
      units: this.#units,
      separator,
      isPlain: this.#isPlain,
      unread: null,
      names,
      memberText: textOf,
      member: (name) => {
        const text = textOf(name);
        return text === null ? undefined : parsedValue(text);
      },
      partHash: (name) => {
        if (name === "system" && system.length > 0) return hashOf(system.join(" "));
        const text = textOf(name);
        if (text === null) return name === "tools" ? this.#tools : null;
        return hashOf(text);
      },
    };
  }
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/** The value of a JSON text; undefined for a text that is none. */
function parsedValue(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
