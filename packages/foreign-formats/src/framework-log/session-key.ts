import { createHash } from "node:crypto";
import { sessionRef, type SessionRef } from "@throughline/core";
import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";

/** Identifies a session by the framework's ids. */
export interface FrameworkSession {
  /** Names the agent that the session belongs to. */
  readonly agentId: string;
  /** Names the framework as session keys spell it, such as `openai-agents`. */
  readonly framework: string;
  /**
   * States the framework's id of the session, any text. A framework with several ids passes a list. Its first ids come
   * first in the key, so that a list can ask for a key prefix.
   */
  readonly id: string | readonly string[];
  /** Names the namespace of the session in the store. @default "" */
  readonly namespace?: string | undefined;
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
/** A key may not hold these characters. The percent sign is escaped as well, because it starts an escape sequence. */
const forbiddenInPart = /[%:\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;
const forbidden = /[%\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/**
 * Returns the address of a framework's session: `agent:<agentId>:<framework>:<id>`. Different ids give different keys.
 * A character that a key may not hold becomes `%` and its code in hex. An id that is too long ends with its hash.
 * @throws {ThroughlineError} INPUT_INVALID, AGENT_ID_INVALID, NAMESPACE_INVALID, KEY_INVALID
 */
export function frameworkSessionKey(session: FrameworkSession): SessionRef {
  assertKnownOptions<FrameworkSession>("frameworkSessionKey", session, table);
  const { agentId, framework, id, namespace = "" } = session;
  const prefix = `agent:${agentId}:${framework}:`;
  const key = prefix + (typeof id === "string" ? encoded(id, maxKeyLength - prefix.length) : encodedParts(id));
  return sessionRef({ key, agentId, namespace });
}

/** The parts and the prefix together must fit into a key of 512 characters. */
const maxPartLengths: readonly number[] = [220, 80, 110];

/**
 * Each part has a limit that does not depend on the other parts. Lists that begin with the same parts therefore give
 * keys with the same prefix.
 */
function encodedParts(parts: readonly string[]): string {
  return parts.map((part, at) => encoded(part, maxPartLengths[at] ?? 80, forbiddenInPart)).join(":");
}

function encoded(id: string, length: number, signs: RegExp = forbidden): string {
  // No id can produce this text, because a percent sign in an id is escaped.
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

/** A key may not begin or end with white space, so it is escaped there. */
function encodeEnds(text: string): string {
  const [first = "", last = ""] = [text.at(0), text.at(-1)];
  const start = first.trim() === "" ? percent(first) + text.slice(1) : text;
  return last.trim() === "" && text.length > 1 ? start.slice(0, -1) + percent(last) : start;
}
