import {
  assertAgentId,
  assertKnownOptions,
  assertSessionId,
  optionKinds,
  type OptionTable,
  quote,
} from "@throughline/core/internal";
import { hasErrorCode, parseSessionKey, ThroughlineError } from "@throughline/core";

/**
 * This module computes OpenClaw's file layout, which Throughline's file store shares. The functions map text to text
 * and never access a disk.
 */

interface StorePathOptions {
  /** States the directory that holds `agents`. */
  readonly stateDir: string;
  /** Names the agent whose directory is used. @default "main" */
  readonly agentId?: string;
}

/** Returns `<stateDir>/agents/<agentId>/sessions`. @throws {ThroughlineError} AGENT_ID_INVALID */
export function resolveSessionsDir(options: StorePathOptions): string {
  const agentId = options.agentId ?? "main";
  assertAgentId(agentId);
  return joinPath(options.stateDir, "agents", agentId, "sessions");
}

/** Returns `<stateDir>/agents/<agentId>/sessions/sessions.json`. @throws {ThroughlineError} AGENT_ID_INVALID */
export function resolveDefaultStorePath(options: StorePathOptions): string {
  return joinPath(resolveSessionsDir(options), "sessions.json");
}

export const pathTable: OptionTable<StorePathOptions & { readonly homeDir: string }> = {
  stateDir: optionKinds.required(optionKinds.text),
  agentId: optionKinds.text,
  homeDir: optionKinds.required(optionKinds.text),
};

/**
 * Returns a configured store path with `{agentId}` and a leading `~` replaced. Returns the default path when none is
 * configured.
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
 * Returns the path of a session's transcript, or of one of its topics.
 * @throws {ThroughlineError} AGENT_ID_INVALID, SESSION_ID_INVALID, INPUT_INVALID
 */
export function resolveTranscriptPath(
  options: StorePathOptions & { readonly sessionId: string; readonly topicId?: string | number },
): string {
  return joinPath(resolveSessionsDir(options), transcriptFileName(options.sessionId, options.topicId));
}

/**
 * The name is `<sessionId>.jsonl` or `<sessionId>-topic-<topicId>.jsonl` with the topic percent-encoded.
 * @throws {ThroughlineError} SESSION_ID_INVALID, INPUT_INVALID
 */
function transcriptFileName(sessionId: string, topicId?: string | number): string {
  assertSessionId(sessionId);
  return topicId === undefined ? `${sessionId}.jsonl` : `${sessionId}-topic-${encodeTopic(topicId)}.jsonl`;
}

/** An archive appends `.deleted.<time>` to the name, and file systems limit names to 255 bytes. */
const maxTranscriptName = 215;

/**
 * Returns the name of a session's transcript. A `topicId`, or a key of a thread or topic, gives the name of that topic.
 * A topic id from a key is left out when it gives no valid file name.
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
    // Keys of other programs have other forms, and their topic ids have any length, so they give no topic.
    if (hasErrorCode(error, "KEY_INVALID", "INPUT_INVALID")) return null;
    throw error;
  }
}

/** An entry may wrongly name the index, a lock or a log of the same directory. Those are no transcripts. */
function isTranscriptName(name: string): boolean {
  return name.endsWith(".jsonl") || /\.jsonl\.(?:reset|deleted)\./.test(name);
}

interface ResolvedSessionFile {
  /**
   * The path is always a direct child of the sessions directory, so that an entry cannot reach a file outside of it.
   */
  readonly path: string;
  readonly fileName: string;
  /** True means that the entry's path leads to another machine's home or out of the directory. */
  readonly isForeign: boolean;
}

/**
 * Resolves the transcript that an entry names. Only the last segment of the entry's path counts, inside the sessions
 * directory, so that no entry can reach another file. An invalid name (`..`, a NUL, not a transcript) falls back to the
 * session's id.
 * @throws {ThroughlineError} SESSION_ID_INVALID when both the path and the id are unusable
 */
export function resolveSessionFile(
  sessionsDir: string,
  entry: { readonly sessionId: string; readonly sessionFile?: string | null },
): ResolvedSessionFile {
  // The entry may come from another program, so its path may not be text.
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

/** The name must be one plain file of its directory on every operating system. */
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

/** A part's leading slashes are dropped, so that no part can make the path absolute. */
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
