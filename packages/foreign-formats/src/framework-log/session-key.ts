import { createHash } from "node:crypto";
import { sessionRef, type SessionRef } from "@throughline/core";
import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";

/** Whose session a framework's id names. */
export interface FrameworkSession {
  /** The agent of the session. */
  readonly agentId: string;
  /** As keys name it: `openai-agents`. */
  readonly framework: string;
  /** The framework's id of the session, any text; a list where it has several, of which the first ones are what lists ask for. */
  readonly id: string | readonly string[];
  /** The namespace of the session. @default "" */
  readonly namespace?: string;
}

const { filledText, listOf, either, required, text } = optionKinds;
const textOrTexts = either(text, listOf(text));
const table: OptionTable<FrameworkSession> = {
  agentId: required(filledText),
  framework: required(filledText),
  id: required(textOrTexts),
  namespace: text,
};

const maxKeyLength = 512;
/** What a key may not hold, and the sign that says so. */
const forbiddenInPart = /[%:\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;
const forbidden = /[%\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/**
 * The address of a framework's session: `agent:<agentId>:<framework>:<id>`. Other ids get other keys. What a key may not
 * hold is written as `%` with its number, and an id that is too long ends with its hash.
 * @throws {ThroughlineError} INPUT_INVALID, AGENT_ID_INVALID, NAMESPACE_INVALID, KEY_INVALID
 */
export function frameworkSessionKey(session: FrameworkSession): SessionRef {
  assertKnownOptions<FrameworkSession>("frameworkSessionKey", session, table);
  const { agentId, framework, id, namespace = "" } = session;
  const prefix = `agent:${agentId}:${framework}:`;
  const key = prefix + (typeof id === "string" ? encoded(id, maxKeyLength - prefix.length) : encodedParts(id));
  return sessionRef({ key, agentId, namespace });
}

/** Together with the names before them they fit into a key. */
const maxPartLengths: readonly number[] = [220, 80, 110];

/** What a part is at most, so that the key of every list that begins with the same parts begins with the same text. */
function encodedParts(parts: readonly string[]): string {
  return parts.map((part, at) => encoded(part, maxPartLengths[at] ?? 80, forbiddenInPart)).join(":");
}

function encoded(id: string, length: number, signs: RegExp = forbidden): string {
  // Neither can come of an id: its own percent signs are encoded.
  if (id === "") return "%empty";
  const text = encodeEnds(id.replace(signs, percent));
  if (text.length <= length) return text;
  const hash = `%hash-${createHash("sha256").update(Buffer.from(id, "utf16le")).digest("hex")}`;
  return (
    text
      .slice(0, length - hash.length)
      .toWellFormed()
      .replaceAll("\uFFFD", "") + hash
  );
}

function percent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** A key has no white space at its ends. */
function encodeEnds(text: string): string {
  const [first = "", last = ""] = [text.at(0), text.at(-1)];
  const start = first.trim() === "" ? percent(first) + text.slice(1) : text;
  return last.trim() === "" && text.length > 1 ? start.slice(0, -1) + percent(last) : start;
}
