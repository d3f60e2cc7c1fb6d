import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { ReadReply, SplitRequest } from "./wire/index.ts";

/**
 * Names a conversation by the client's own id. The id is only a name inside the token's scope, so it grants no access.
 */
export interface NamedSession {
  readonly id: string;
  /** Is null unless the sub-agent has its own conversation. */
  readonly agentId: string | null;
  /** Is null unless a sub-agent's conversation has an id of its own. */
  readonly parentId: string | null;
  /**
   * Is true for an id that several conversations may share, such as a cache key. Such an id counts only when the
   * messages agree.
   */
  readonly isShared: boolean;
}

const productHeaders: readonly string[] = [
  "x-claude-code-session-id",
  "session-id",
  "session_id",
  "thread-id",
  "x-opencode-session",
  "x-session-affinity",
  "x-session-id",
  "helicone-session-id",
  "x-openclaw-session-key",
  "x-litellm-session-id",
];

const naming: readonly string[] = [
  ...productHeaders,
  "throughline-session",
  "x-claude-code-agent-id",
  "x-claude-code-compaction",
  "x-codex-turn-metadata",
  "x-parent-session-id",
  "user-agent",
];

/** Keeps only the headers that name a conversation, so that no credential reaches the spool. */
export function sessionHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(naming.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])));
}

export function namedSession(headers: IncomingHttpHeaders, split: SplitRequest | null): NamedSession | null {
  const codex = fieldsOf(headers["x-codex-turn-metadata"]);
  for (const name of productHeaders) {
    const id = textOf(headers[name]);
    if (id === null) continue;
    const agentId =
      name === "x-claude-code-session-id" ? textOf(headers["x-claude-code-agent-id"]) : codexThread(codex, id);
    const parent = textOf(headers["x-parent-session-id"]);
    return { id, agentId, parentId: agentId === null && parent !== id ? parent : null, isShared: false };
  }
  const session = textOf(codex["session_id"]);
  if (session !== null) return { id: session, agentId: codexThread(codex, session), parentId: null, isShared: false };
  return split === null ? null : namedInBody(split);
}

/** Maps the product at the start of `user-agent` to the format of the program. */
const clientsByProduct: ReadonlyMap<string, string> = new Map([
  ["claude-cli", "claude-code"],
  ["claude-code", "claude-code"],
  ["codex_cli_rs", "codex"],
  ["codex_exec", "codex"],
  ["codex_vscode", "codex"],
  ["codex-tui", "codex"],
  ["opencode", "opencode"],
  ["geminicli", "gemini"],
  ["openclaw", "openclaw"],
  ["pi", "pi"],
]);

/** Names the program that sent a request, by its own headers; null for any other program. */
export function clientOf(headers: IncomingHttpHeaders): string | null {
  if (textOf(headers["x-claude-code-session-id"]) !== null) return "claude-code";
  if (textOf(headers["x-codex-turn-metadata"]) !== null) return "codex";
  if (textOf(headers["x-opencode-session"]) !== null) return "opencode";
  if (textOf(headers["x-openclaw-session-key"]) !== null) return "openclaw";
  const product = /^[\w.-]{1,40}/.exec(headers["user-agent"] ?? "")?.[0].toLowerCase() ?? "";
  return clientsByProduct.get(product) ?? null;
}

/** A sub-agent of Codex has its own thread within the session, so the session id alone would merge conversations. */
function codexThread(metadata: Fields, id: string): string | null {
  const thread = textOf(metadata["thread_id"]);
  return textOf(metadata["parent_thread_id"]) !== null && thread !== null && thread !== id ? thread : null;
}

function namedInBody(split: SplitRequest): NamedSession | null {
  const metadata = fieldsOf(split.member("metadata"));
  const own =
    textOf(metadata["session_id"]) ??
    textOf(split.member("litellm_session_id")) ??
    textOf(split.member("session_id")) ??
    sessionOfUser(metadata["user_id"]);
  if (own !== null) return { id: own, agentId: null, parentId: null, isShared: false };
  const cache = textOf(split.member("prompt_cache_key"));
  return cache === null ? null : { id: cache, agentId: null, parentId: null, isShared: true };
}

/**
 * Accepts `user_…_session_UUID`, or JSON with a `session_id`. An id of a user alone names a person, not a conversation.
 */
function sessionOfUser(user: unknown): string | null {
  if (typeof user !== "string" || user.length > 4096) return null;
  const at = user.lastIndexOf("_session_");
  if (at !== -1) return textOf(user.slice(at + "_session_".length));
  return textOf(fieldsOf(user)["session_id"]);
}

export function isCompaction(headers: IncomingHttpHeaders): boolean {
  const kind = fieldsOf(headers["x-codex-turn-metadata"])["request_kind"];
  return kind === "compaction" || headers["x-claude-code-compaction"] !== undefined;
}

/**
 * Returns whether an agent asks for something beside its conversation: a title, or a check of its account. The main
 * agents usually send tools, but a user may disable them. A request without tools is therefore no proof on its own.
 */
export function isAside(headers: IncomingHttpHeaders, split: SplitRequest): boolean {
  const tools = split.member("tools");
  if (Array.isArray(tools) ? tools.length > 0 : split.partHash("tools") !== null) return false;
  if (headers["user-agent"]?.startsWith("opencode/") === true) return true;
  if (headers["x-claude-code-session-id"] === undefined) return false;
  return split.member("max_tokens") === 1 || fieldsOf(split.member("output_config"))["format"] !== undefined;
}

/** Returns the id of the reply that a request follows, or null. The APIs name it in different members. */
export function followedReply(split: SplitRequest): string | null {
  const previous = split.member("previous_response_id");
  if (typeof previous === "string") return previous;
  for (const name of ["thread", "diagnostics"]) {
    const value = split.member(name);
    const id =
      typeof value === "object" && value !== null
        ? (value as Readonly<Record<string, unknown>>)["previous_message_id"]
        : null;
    if (typeof id === "string") return id;
  }
  return null;
}

/** Returns the id by which a later request may name the reply to a request, or null. */
export function namedReply(split: SplitRequest, read: ReadReply | null): string | null {
  const isNamed = split.api === "openai-responses" || split.member("thread") !== undefined;
  return isNamed ? (read?.draft?.message.responseId ?? null) : null;
}

const plainId = /^[a-z0-9][a-z0-9._-]{0,99}$/;

/** Turns a client's id into a part of a session key. Other ids are hashed, because some stores ignore case in keys. */
export function keyPart(id: string): string {
  return plainId.test(id) ? id : `h${createHash("sha256").update(id).digest("hex").slice(0, 32)}`;
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown): Fields {
  if (typeof value === "object" && value !== null) return value as Fields;
  if (typeof value !== "string" || !value.startsWith("{")) return {};
  try {
    return JSON.parse(value) as Fields;
  } catch (error) {
    // Clients control this header, so malformed JSON names no conversation instead of failing the request.
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" && value.length <= 4096 ? value : null;
}
