import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { SplitRequest } from "@throughline/wire/internal";

/** What a client says of the conversation that a request belongs to. Never more than a name within the token's own scope. */
export interface NamedSession {
  /** As the client writes it. */
  readonly id: string;
  /** The sub-agent that asks, in a conversation of its own. */
  readonly agentId: string | null;
  /** The conversation that a sub-agent works for, where its own has a name of its own. */
  readonly parentId: string | null;
  /** Where the name stood: one that several conversations may share counts only where the messages agree. */
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

/** Of the headers of a request those that say which conversation it belongs to. */
export function sessionHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return Object.fromEntries(naming.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])));
}

/** The conversation that a request names by a header of its program, or in its body; null where it names none. */
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

/** A sub-agent of Codex has a thread of its own in the session. */
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

/** `user_…_session_UUID`, or JSON with a session_id. A user alone is a person and no conversation. */
function sessionOfUser(user: unknown): string | null {
  if (typeof user !== "string" || user.length > 4096) return null;
  const at = user.lastIndexOf("_session_");
  if (at !== -1) return textOf(user.slice(at + "_session_".length));
  return textOf(fieldsOf(user)["session_id"]);
}

/** Whether the client says that it shortens its own history with this request. */
export function isCompaction(headers: IncomingHttpHeaders): boolean {
  const kind = fieldsOf(headers["x-codex-turn-metadata"])["request_kind"];
  return kind === "compaction" || headers["x-claude-code-compaction"] !== undefined;
}

/**
 * Whether an agent asks for something beside its conversation, also before that has begun: a title, or whether its account may
 * ask at all. Their main agents have tools, unless somebody takes these away: a request without tools is no proof alone.
 */
export function isAside(headers: IncomingHttpHeaders, split: SplitRequest): boolean {
  const tools = split.member("tools");
  if (Array.isArray(tools) ? tools.length > 0 : split.partHash("tools") !== null) return false;
  if (headers["user-agent"]?.startsWith("opencode/") === true) return true;
  if (headers["x-claude-code-session-id"] === undefined) return false;
  return split.member("max_tokens") === 1 || fieldsOf(split.member("output_config"))["format"] !== undefined;
}

const plainId = /^[a-z0-9][a-z0-9._-]{0,99}$/;

/** A client's id as a part of a key; one that is none is hashed. Keys that differ in case only are one key in some stores. */
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
    // A header that is no JSON names nothing.
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" && value.length <= 4096 ? value : null;
}
