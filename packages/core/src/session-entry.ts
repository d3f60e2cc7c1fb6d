import {
  allowCopy,
  assertEntryBounds,
  assertEntryNesting,
  assertFewMembers,
  isAllowedAsLarge,
} from "./entry-bounds.ts";
import { refused } from "./refused.ts";
import { ThroughlineError } from "./throughline-error.ts";

/** States where a reply to the session goes. */
export interface DeliveryContext {
  /** Names the channel, such as `telegram`. */
  readonly channel?: string;
  /** States the address within the channel. */
  readonly to?: string;
  /** Names the account of the agent that sends. */
  readonly accountId?: string;
  /** Names the thread or topic within the conversation. */
  readonly threadId?: string | number;
}

/** States where a session came from. */
export interface SessionOrigin extends DeliveryContext {
  /** States the name of the sender or of the conversation. */
  readonly label?: string;
  /** Names the program or service that delivered the first message. */
  readonly provider?: string;
  /** Names the interface on which the message arrived. */
  readonly surface?: string;
  /** States the kind of conversation: `direct`, `group` or `channel`. */
  readonly chatType?: string;
  /** States the sender's address, as the channel writes it. */
  readonly from?: string;
}

/**
 * Sets how a message is treated that arrives during a turn. A mode that is not listed is kept, although its meaning is
 * unknown.
 */
type QueueMode =
  | "steer"
  | "followup"
  | "collect"
  | "steer-backlog"
  | "steer+backlog"
  | "queue"
  | "interrupt"
  | (string & {});

/**
 * Holds the data of a session besides its records. It is primary data: some of it exists nowhere else. The named fields
 * are OpenClaw's and ClawCode's; every other field is kept unchanged. Any program may have written the fields. The
 * types state what a field means, so a reader must check a field before acting on it.
 */
export interface SessionEntry {
  /** States the id of the session behind the key; its records belong to this id. */
  readonly sessionId: string;
  /** States the time of the last activity, in UTC milliseconds. */
  readonly updatedAt?: number;
  /** States OpenClaw's path of the transcript. The field is kept, and no store reads it. */
  readonly sessionFile?: string;
  /** States the key of the session that spawned this session. */
  readonly spawnedBy?: string;
  /** Counts the generations below a session that no session spawned. */
  readonly spawnDepth?: number;
  /** States the key of the conversation that a thread or topic belongs to. */
  readonly parentSessionKey?: string;
  /** States the id of the Claude Agent SDK's own session. */
  readonly sdkSessionId?: string;
  /** Holds that id by provider, as programs kept it before there was one field. */
  readonly cliSessionIds?: Readonly<Record<string, string>>;
  /** States the Claude Code session, as programs wrote it before `sdkSessionId`. */
  readonly claudeCliSessionId?: string;
  /** States the name that a person gave the session. */
  readonly label?: string;
  /** States a name that was derived from the conversation; `label` takes precedence. */
  readonly title?: string;
  /** States what created the title: `rules`, `model`, or `import` for a title that the source states. */
  readonly titleBy?: string;
  /** States a name that another program created for its lists. */
  readonly displayName?: string;
  /**
   * States the absolute path of the session's working folder. A terminal resumes the newest session of its own folder.
   */
  readonly cwd?: string;
  /** States the repository of the working folder, as the program that wrote the session names it. */
  readonly repository?: string;
  /** States the branch that was checked out last. */
  readonly branch?: string;
  /** States the kind of conversation: `direct`, `group` or `channel`; `dm` is an old word for `direct`. */
  readonly chatType?: string;
  /** States the channel's id of the group. */
  readonly groupId?: string;
  /** States the group's subject, as people see it. */
  readonly subject?: string;
  /** Names the channel within the group, such as `#general`. */
  readonly groupChannel?: string;
  /** Names the workspace or server that the group belongs to. */
  readonly space?: string;
  /** Decides whether the agent may answer here. It overrides the rules of the configuration. */
  readonly sendPolicy?: "allow" | "deny";
  /** Decides whether the agent answers only those messages of a group that mention it. */
  readonly groupActivation?: "mention" | "always";
  /** Makes the next turn introduce the group to the model (OpenClaw's flag). */
  readonly groupActivationNeedsSystemIntro?: boolean;
  /** Names the channel of the conversation. */
  readonly channel?: string;
  /** Names the channel of the last inbound message. */
  readonly lastChannel?: string;
  /** States the address within that channel, to which replies go. */
  readonly lastTo?: string;
  /** Names the account that received the last message. */
  readonly lastAccountId?: string;
  /** Names the thread or topic of the last message. */
  readonly lastThreadId?: string | number;
  /** States where replies go; it repeats the `last…` fields. */
  readonly deliveryContext?: DeliveryContext;
  /** States where the session's first message came from. */
  readonly origin?: SessionOrigin;
  /** Names the provider that a person chose for this session. */
  readonly providerOverride?: string;
  /** Names the model that a person chose for this session. */
  readonly modelOverride?: string;
  /** Names OpenClaw's credentials profile for this session. */
  readonly authProfileOverride?: string;
  /** States whether a person or OpenClaw chose that profile. */
  readonly authProfileOverrideSource?: "auto" | "user";
  /** States the `compactionCount` at which that profile was chosen. */
  readonly authProfileOverrideCompactionCount?: number;
  /** Names the provider that answered last. */
  readonly modelProvider?: string;
  /** Names the model that answered last. */
  readonly model?: string;
  /** Sets where shell commands run (OpenClaw's setting). */
  readonly execHost?: string;
  /** Sets which shell commands are allowed (OpenClaw's setting). */
  readonly execSecurity?: string;
  /** Sets when a person is asked before a command (OpenClaw's setting). */
  readonly execAsk?: string;
  /** Names the node on which commands run (OpenClaw's setting). */
  readonly execNode?: string;
  /** Sets the thinking level that a person chose for this session. */
  readonly thinkingLevel?: string;
  /** Sets how much of its work the agent shows (OpenClaw's setting). */
  readonly verboseLevel?: string;
  /** Sets whether thinking is shown (OpenClaw's setting). */
  readonly reasoningLevel?: string;
  /** Sets whether commands run outside the sandbox (OpenClaw's setting). */
  readonly elevatedLevel?: string;
  /** Sets how the tokens of a reply are shown (OpenClaw's setting). */
  readonly responseUsage?: "on" | "off" | "tokens" | "full";
  /** Sets when replies are spoken (OpenClaw's setting). */
  readonly ttsAuto?: string;
  /** Decides what happens to messages that arrive while a turn runs. */
  readonly queueMode?: QueueMode;
  /** Sets how long waiting messages are collected before a turn starts, in milliseconds. */
  readonly queueDebounceMs?: number;
  /** Limits the number of waiting messages. */
  readonly queueCap?: number;
  /** Decides what happens to messages beyond `queueCap`. */
  readonly queueDrop?: "old" | "new" | "summarize";
  /** Counts the tokens of the last call's prompt, in its writer's way of counting. */
  readonly inputTokens?: number;
  /** Counts the tokens of the last call's reply. */
  readonly outputTokens?: number;
  /** Counts the tokens of the context, as far as they are known. */
  readonly totalTokens?: number;
  /** States whether `totalTokens` is to be trusted. */
  readonly totalTokensFresh?: boolean;
  /** States the size of the model's window, in tokens. */
  readonly contextTokens?: number;
  /** Counts the compactions since the session began. */
  readonly compactionCount?: number;
  /** States when memory was last flushed. The field does not decide whether a flush is due. */
  readonly memoryFlushAt?: number;
  /** States the `compactionCount` at the last memory flush. The field does not decide whether a flush is due. */
  readonly memoryFlushCompactionCount?: number;
  /** States whether a turn of the session has sent its system prompt. */
  readonly systemSent?: boolean;
  /** States whether the last turn was aborted. */
  readonly abortedLastRun?: boolean;
  /** Holds OpenClaw's last heartbeat message. */
  readonly lastHeartbeatText?: string;
  /** States when that message was sent, in milliseconds since 1970. */
  readonly lastHeartbeatSentAt?: number;
  /** Lists the sessions that had the key before, oldest first. */
  readonly previousSessionIds?: readonly string[];
  readonly [field: string]: unknown;
}

/** A writer's clock may be ahead of the store's clock by this much before its `updatedAt` is replaced. */
const maxAheadMs = 5 * 60 * 1000;

/** Returns the activity time after a save or append: never before the old time, never far in the future. */
export function nextUpdatedAtMs(
  oldMs: number,
  claimedMs: unknown,
  nowMs: number,
): { readonly updatedAtMs: number; readonly wasClamped: boolean } {
  if (typeof claimedMs !== "number" || !Number.isFinite(claimedMs)) return { updatedAtMs: oldMs, wasClamped: false };
  const wasClamped = claimedMs > nowMs + maxAheadMs;
  return { updatedAtMs: Math.max(oldMs, wasClamped ? nowMs : Math.trunc(claimedMs)), wasClamped };
}

/**
 * Sets the fields of a patch in an entry; `undefined` removes a field. Only own properties count, `__proto__` included,
 * so that no field is lost and no setter runs.
 */
export function patchEntry(entry: SessionEntry, patch: Readonly<Record<string, unknown>>): SessionEntry {
  // A copy by JSON creates all fields at once. Building an object from a list of fields takes time for each field.
  const own: Record<string, unknown> = { ...ownEntry(entry) };
  for (const [field, value] of Object.entries(patch)) {
    const copy = jsonOf(value);
    if (copy === undefined) delete own[field];
    else Object.defineProperty(own, field, { value: copy, enumerable: true, configurable: true, writable: true });
  }
  return ownEntry(own);
}

/**
 * Copies the caller's entry as plain JSON, so that the caller's later changes have no effect.
 * @throws {ThroughlineError} INPUT_INVALID when it is not a JSON object with a sessionId
 */
export function ownEntry(entry: unknown): SessionEntry {
  let text: string | undefined;
  try {
    text = JSON.stringify(entry);
  } catch (cause) {
    throw new ThroughlineError("INPUT_INVALID", "The entry is not JSON.", { outcome: "not-applied", cause });
  }
  const copy: unknown = text === undefined ? null : JSON.parse(text);
  if (typeof copy !== "object" || copy === null || typeof (copy as { sessionId?: unknown }).sessionId !== "string") {
    throw new ThroughlineError("INPUT_INVALID", "The entry is not an object with a sessionId.", {
      outcome: "not-applied",
    });
  }
  return copy as SessionEntry;
}

/**
 * Copies an entry that is to be written, like `ownEntry`, and checks its limits.
 * @throws {ThroughlineError} INPUT_INVALID also when it is nested deeper or larger than a store takes
 */
export function givenEntry(entry: unknown): SessionEntry {
  if (isAllowedAsLarge(entry)) return allowedCopy(entry);
  // A copy of an object with many members is slow, so the members are counted first.
  assertFewMembers(entry);
  const own = ownEntry(entry);
  assertEntryBounds(own);
  return own;
}

function allowedCopy(entry: unknown): SessionEntry {
  const own = ownEntry(entry);
  assertEntryNesting(own);
  allowCopy(own);
  return own;
}

/**
 * Copies the fields that an append sets as plain JSON, because the caller may change its own fields while the append
 * waits. A value that JSON leaves out becomes `undefined`, and removes its field. The whole entry is not checked,
 * because another program may have nested it deeper.
 * @throws {ThroughlineError} INPUT_INVALID when they are no object of JSON, or nested deeper or larger than a store
 * takes
 */
export function givenPatch(patch: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch))
    throw refused("INPUT_INVALID", "The fields of an entry are an object.", {});
  try {
    assertFewMembers(patch);
    assertEntryNesting(patch);
    const fields = Object.entries(patch).map(([field, value]) => [field, jsonOf(value)] as const);
    const own = Object.fromEntries(fields);
    // The JSON form is checked once more, because a `toJSON` may nest its value deeper.
    assertEntryBounds(own);
    return own;
  } catch (cause) {
    if (ThroughlineError.isInstance(cause)) throw cause;
    throw refused("INPUT_INVALID", "The fields of the entry are not JSON.", {}, cause);
  }
}

function jsonOf(value: unknown): unknown {
  try {
    const text = JSON.stringify(value) as string | undefined;
    return text === undefined ? undefined : JSON.parse(text);
  } catch (cause) {
    throw refused("INPUT_INVALID", "The fields of the entry are not JSON.", {}, cause);
  }
}
