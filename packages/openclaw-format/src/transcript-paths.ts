import {
  assertAgentId,
  assertKnownOptions,
  assertSessionId,
  optionKinds,
  type OptionTable,
  quote,
} from "@throughline/core/internal";
import { hasErrorCode, parseSessionKey, ThroughlineError } from "@throughline/core";

/** Where OpenClaw, and our file store with it, keeps what. Texts in, texts out: nothing here looks at a disk. */

interface StorePathOptions {
  /** The directory that holds `agents`. */
  readonly stateDir: string;
  /** The agent whose directory is meant. @default "main" */
  readonly agentId?: string;
}

/** `<stateDir>/agents/<agentId>/sessions`. @throws {ThroughlineError} AGENT_ID_INVALID */
export function resolveSessionsDir(options: StorePathOptions): string {
  const agentId = options.agentId ?? "main";
  assertAgentId(agentId);
  return joinPath(options.stateDir, "agents", agentId, "sessions");
}

/** `<stateDir>/agents/<agentId>/sessions/sessions.json`. @throws {ThroughlineError} AGENT_ID_INVALID */
export function resolveDefaultStorePath(options: StorePathOptions): string {
  return joinPath(resolveSessionsDir(options), "sessions.json");
}

export const pathTable: OptionTable<StorePathOptions & { readonly homeDir: string }> = {
  stateDir: optionKinds.required(optionKinds.text),
  agentId: optionKinds.text,
  homeDir: optionKinds.required(optionKinds.text),
};

/**
 * A configured store path: `{agentId}` is replaced, a leading `~` is the home directory. Without one, the default.
 * @throws {ThroughlineError} AGENT_ID_INVALID, PATH_UNSAFE (a NUL)
 */
export function resolveStorePath(
  store: string | undefined,
  options: StorePathOptions & { readonly homeDir: string },
): string {
  assertKnownOptions<StorePathOptions & { readonly homeDir: string }>("resolveStorePath", options, pathTable);
  const configured = store?.trim() ?? "";
  if (configured === "") return resolveDefaultStorePath(options);
  const agentId = options.agentId ?? "main";
  assertAgentId(agentId);
  if (configured.includes("\0")) throw unsafe(configured);
  const named = configured.replaceAll("{agentId}", agentId);
  return named === "~" || named.startsWith("~/") || named.startsWith("~\\")
    ? joinPath(options.homeDir, named.slice(1))
    : named;
}

/**
 * The path of a session's transcript, or of one of its topics.
 * @throws {ThroughlineError} AGENT_ID_INVALID, SESSION_ID_INVALID, INPUT_INVALID
 */
export function resolveTranscriptPath(
  options: StorePathOptions & { readonly sessionId: string; readonly topicId?: string | number },
): string {
  return joinPath(resolveSessionsDir(options), transcriptFileName(options.sessionId, options.topicId));
}

/**
 * `<sessionId>.jsonl` or `<sessionId>-topic-<topicId>.jsonl` with the topic percent-encoded.
 * @throws {ThroughlineError} SESSION_ID_INVALID, INPUT_INVALID
 */
function transcriptFileName(sessionId: string, topicId?: string | number): string {
  assertSessionId(sessionId);
  return topicId === undefined ? `${sessionId}.jsonl` : `${sessionId}-topic-${encodeTopic(topicId)}.jsonl`;
}

/** An archived one is called longer by `.deleted.<time>`, and every file system takes names of 255 bytes. */
const maxTranscriptName = 215;

/**
 * The name of a session's transcript: that of a topic where the key is of a thread or a topic, or `topicId` is given. A topic
 * id of a key that makes no file name is left out of it.
 * @throws {ThroughlineError} SESSION_ID_INVALID, INPUT_INVALID for a `topicId`
 */
export function transcriptFileNameOf(session: {
  readonly sessionId: string;
  readonly key: string;
  readonly topicId?: string | null;
}): string {
  const { sessionId, key } = session;
  const topic = session.topicId ?? topicOf(key);
  const name = transcriptFileName(sessionId, topic ?? undefined);
  return name.length <= maxTranscriptName ? name : transcriptFileName(sessionId);
}

function topicOf(key: string): string | null {
  try {
    const parsed = parseSessionKey(key);
    const id = parsed.form === "agent" ? parsed.suffix?.id : undefined;
    if (id !== undefined) encodeTopic(id);
    return id ?? null;
  } catch (error) {
    // Other programs have keys of other forms, and topics of any length.
    if (hasErrorCode(error, "KEY_INVALID", "INPUT_INVALID")) return null;
    throw error;
  }
}

/** The index, a lock or a log of the same directory is no transcript, whatever an entry says. */
function isTranscriptName(name: string): boolean {
  return name.endsWith(".jsonl") || /\.jsonl\.(?:reset|deleted)\./.test(name);
}

interface ResolvedSessionFile {
  /** Always a direct child of the sessions directory. */
  readonly path: string;
  readonly fileName: string;
  /** True when the entry's path leads elsewhere: to another machine's home, or out of the directory. */
  readonly isForeign: boolean;
}

/**
 * The transcript that an entry names. Only the last name of the entry's path counts, inside the sessions directory. An
 * invalid name (`..`, a NUL, not a transcript) falls back to the session's id.
 * @throws {ThroughlineError} SESSION_ID_INVALID when both the path and the id are unusable
 */
export function resolveSessionFile(
  sessionsDir: string,
  entry: { readonly sessionId: string; readonly sessionFile?: string | null },
): ResolvedSessionFile {
  // An entry comes from a file of another program: what it calls a path need not be text.
  const stated: unknown = entry.sessionFile ?? "";
  if (typeof stated !== "string") return { ...named(sessionsDir, entry.sessionId), isForeign: true };
  const name = stated.split(/[/\\]/).at(-1) ?? "";
  if (isPlainFileName(name) && isTranscriptName(name)) {
    const path = joinPath(sessionsDir, name);
    return { path, fileName: name, isForeign: stated !== name && normalized(stated) !== normalized(path) };
  }
  return { ...named(sessionsDir, entry.sessionId), isForeign: stated !== "" };
}

function named(sessionsDir: string, sessionId: string): Omit<ResolvedSessionFile, "isForeign"> {
  const fileName = transcriptFileName(sessionId);
  return { path: joinPath(sessionsDir, fileName), fileName };
}

/** True for a name that is one file of its directory and nothing else, on every system. */
function isPlainFileName(name: string): boolean {
  return (
    name !== "" &&
    name !== "." &&
    name !== ".." &&
    name.length <= 255 &&
    !/[/\\:\p{Cc}]/u.test(name) &&
    name.isWellFormed()
  );
}

/** Joins with single slashes. Parts after the first are never absolute. */
export function joinPath(first: string, ...parts: readonly string[]): string {
  let path = first;
  for (const part of parts) {
    const inner = part.replace(/^[/\\]+/, "");
    if (inner !== "") path = /[/\\]$/.test(path) ? path + inner : `${path}/${inner}`;
  }
  return path;
}

function encodeTopic(topicId: string | number): string {
  const text = String(topicId).trim();
  if (text === "" || !text.isWellFormed()) {
    throw new ThroughlineError("INPUT_INVALID", `The topic id ${quote(topicId)} cannot be used.`, {
      outcome: "not-applied",
    });
  }
  const encoded = encodeURIComponent(text);
  if (encoded.length > 100) {
    throw new ThroughlineError("INPUT_INVALID", `The topic id ${quote(topicId)} is too long for a file name.`, {
      outcome: "not-applied",
    });
  }
  return encoded;
}

function normalized(path: string): string {
  return path.replaceAll("\\", "/").replace(/\/+/g, "/");
}

function unsafe(path: string): ThroughlineError {
  return new ThroughlineError("PATH_UNSAFE", `The path ${quote(path)} cannot be used.`, {
    outcome: "not-applied",
    details: { path },
  });
}
