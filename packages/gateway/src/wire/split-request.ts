import { createHash } from "node:crypto";
import { elementsOf, type MemberSpan, membersOf, type Span } from "./scan-json.ts";
import { apiReadings, isReply, type WireApi } from "./wire-api.ts";

/** Holds a message of a request: its original text and its parsed values. */
export interface RequestUnit {
  /** Holds the text of the message in the body, unchanged. */
  readonly text: string;
  /**
   * Parses the values on demand. A reply of the Responses API may consist of several items; every other message is one
   * value.
   */
  readonly values: () => readonly unknown[];
}

/** Holds a long value that many requests share, such as the system prompt or the tools. */
export interface RequestPart {
  /** Names the request member that holds the part, such as `tools`; `system` for a system message in the list. */
  readonly name: string;
  /** Holds the JSON of the value, unchanged. */
  readonly text: string;
  /** States the first 16 hexadecimal digits of the SHA-256 of its text. */
  readonly hash: string;
}

/** Describes a piece of the body: literal text, a part, or a message by its index. */
export type RequestPiece =
  | {
      /** Holds text that is written out. */
      readonly literal: string;
    }
  | {
      /** Holds a long value that other requests share. */
      readonly part: RequestPart;
    }
  | {
      /** States the index of a message in `units`. */
      readonly unit: number;
    };

/** Holds the body of a request, split at its messages. */
export interface SplitRequest {
  /** States the API that the caller named for the request. */
  readonly api: WireApi;
  /** Holds the whole body; empty for a body that was not parsed. */
  readonly text: string;
  /** Lists the leading system messages, unchanged. */
  readonly systemParts: readonly string[];
  /** Lists the body in pieces, which give its text when joined. Empty for a body that was not parsed. */
  readonly pieces: readonly RequestPiece[];
  /** Lists the messages after the leading system messages, in order. A piece refers to one by its index. */
  readonly units: readonly RequestUnit[];
  /** States the most frequent text between two messages. The pieces state each exception. */
  readonly separator: string;
  /** States whether the body has a text in place of the list of messages. */
  readonly isPlain: boolean;
  /** Holds the bytes of a body that was not parsed, see `unreadRequest`. Null for every other body. */
  readonly unread: Uint8Array | null;
  /**
   * Returns the value of a member other than the messages. Undefined when the member is missing or its value is not
   * JSON.
   */
  member(name: string): unknown;
  /** Returns the text of a member's value, or null without the member. */
  memberText(name: string): string | null;
  /** Lists the names of the members in order, with repeats. */
  readonly names: readonly string[];
  /**
   * Returns the hash of a member, or of all leading system messages. Null without such a value. `tools` also covers
   * tools at the start of the list in the Responses API.
   */
  partHash(name: string): string | null;
}

/** A shorter value is written out, because a reference would be as long. */
const leastPart = 160;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Decodes a body. Null when it is not UTF-8. */
export function bodyText(body: Uint8Array): string | null {
  try {
    return decoder.decode(body);
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

/** Splits the body of a request at its messages. Null when the body has none, or when the text is not a JSON object. */
export function splitRequest(api: WireApi, text: string): SplitRequest | null {
  const members = membersOf(text);
  if (members === null) return null;
  // JSON parsers use the last of several members with one name.
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
  /** Holds the hash of tools that are an element of the list instead of a member. */
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

  /** A text in place of the list means one user message. */
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

  /**
   * Codex sends its tools as an item before the messages. The item's id differs between sessions, so only the tools
   * become a part.
   */
  #takeTools({ from, to }: Span): void {
    const tools = membersOf(this.#text.slice(from, to))?.findLast(({ name }) => name === "tools");
    if (tools === undefined) return;
    const span = { from: from + tools.from, to: from + tools.to };
    this.#tools ??= hashOf(this.#text.slice(span.from, span.to));
    if (span.to - span.from >= leastPart) this.#part("tools", span);
  }

  /** Consecutive items of the model form one reply, because records keep a reply as one message. */
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

  /** Nested values are not validated before they are read, so a message that is not JSON counts as its text. */
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

/** Returns undefined for a text that is not JSON, because null is a JSON value. */
function parsedValue(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
