import {
  allowCopy,
  assertEntryBounds,
  assertEntryNesting,
  assertFewMembers,
  isAllowedAsLarge,
} from "./entry-bounds.ts";
import { refused } from "./refused.ts";
import { ThroughlineError } from "./throughline-error.ts";

/** Where a reply to the session goes. */
export interface DeliveryContext {
  /** The channel, such as `telegram`. */
  readonly channel?: string;
  /** The address within the channel. */
  readonly to?: string;
  /** The account of the agent that sends. */
  readonly accountId?: string;
  /** The thread or topic within the conversation. */
  readonly threadId?: string | number;
}

/** Where a session came from. */
export interface SessionOrigin extends DeliveryContext {
  /** The sender's or conversation's name. */
  readonly label?: string;
  /** The program or service that delivered the first message. */
  readonly provider?: string;
  /** The interface on which it arrived. */
  readonly surface?: string;
  /** `direct`, `group` or `channel`. */
  readonly chatType?: string;
  /** The sender's address, as the channel writes it. */
  readonly from?: string;
}

/** How what arrives during a turn is treated. Of a mode that is not listed only the word is known; it is kept. */
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
 * What is kept of a session besides its records. Primary data: some of it exists nowhere else. The named fields are
 * OpenClaw's and ClawCode's; every other field is kept as it came. Any program may have written them: the types say what a
 * field means, and whoever acts on one looks first whether it is that.
 */
export interface SessionEntry {
  /** The session behind the key; its records hang on this id. */
  readonly sessionId: string;
  /** UTC milliseconds. */
  readonly updatedAt?: number;
  /** OpenClaw's path of the transcript. It is kept, and no store reads it. */
  readonly sessionFile?: string;
  /** The key of the session that spawned this one. */
  readonly spawnedBy?: string;
  /** Generations below a session that nobody spawned. */
  readonly spawnDepth?: number;
  /** The conversation a thread or topic belongs to. */
  readonly parentSessionKey?: string;
  /** Of the Claude Agent SDK's own session. */
  readonly sdkSessionId?: string;
  /** By provider, where programs kept it before there was one field. */
  readonly cliSessionIds?: Readonly<Record<string, string>>;
  /** The Claude Code session, where programs wrote it before `sdkSessionId`. */
  readonly claudeCliSessionId?: string;
  /** What a person named the session. */
  readonly label?: string;
  /** A name made from the conversation; `label` goes before it. */
  readonly title?: string;
  /** Who made the title: `rules`, `model`, or `import` where the source states one. */
  readonly titleBy?: string;
  /** A name that another program made for its lists. */
  readonly displayName?: string;
  /** The folder that the session works in, absolute. A terminal resumes the newest session of its own folder. */
  readonly cwd?: string;
  /** `direct`, `group` or `channel`; `dm` is an old word for `direct`. */
  readonly chatType?: string;
  /** The channel's id of the group. */
  readonly groupId?: string;
  /** The group's subject, as people see it. */
  readonly subject?: string;
  /** The channel within the group, such as `#general`. */
  readonly groupChannel?: string;
  /** The workspace or server that the group belongs to. */
  readonly space?: string;
  /** Whether the agent may answer here. It goes before the rules of the configuration. */
  readonly sendPolicy?: "allow" | "deny";
  /** Whether a group's messages are answered only where they mention the agent. */
  readonly groupActivation?: "mention" | "always";
  /** OpenClaw's flag: the next turn introduces the group to the model. */
  readonly groupActivationNeedsSystemIntro?: boolean;
  /** The channel of the conversation. */
  readonly channel?: string;
  /** The channel of the last message that came in. */
  readonly lastChannel?: string;
  /** The address within that channel, to which replies go. */
  readonly lastTo?: string;
  /** The account that received the last message. */
  readonly lastAccountId?: string;
  /** The thread or topic of the last message. */
  readonly lastThreadId?: string | number;
  /** Where replies go; it repeats the `last…` fields. */
  readonly deliveryContext?: DeliveryContext;
  /** Where the session's first message came from. */
  readonly origin?: SessionOrigin;
  /** The provider that a person chose for this session. */
  readonly providerOverride?: string;
  /** The model that a person chose for this session. */
  readonly modelOverride?: string;
  /** OpenClaw's credentials profile for this session. */
  readonly authProfileOverride?: string;
  /** Whether a person or OpenClaw chose that profile. */
  readonly authProfileOverrideSource?: "auto" | "user";
  /** `compactionCount` when that profile was chosen. */
  readonly authProfileOverrideCompactionCount?: number;
  /** The provider that answered last. */
  readonly modelProvider?: string;
  /** The model that answered last. */
  readonly model?: string;
  /** OpenClaw's setting: where shell commands run. */
  readonly execHost?: string;
  /** OpenClaw's setting: which shell commands are allowed. */
  readonly execSecurity?: string;
  /** OpenClaw's setting: when a person is asked before a command. */
  readonly execAsk?: string;
  /** OpenClaw's setting: the node on which commands run. */
  readonly execNode?: string;
  /** The thinking level that a person chose for this session. */
  readonly thinkingLevel?: string;
  /** OpenClaw's setting: how much of its work the agent shows. */
  readonly verboseLevel?: string;
  /** OpenClaw's setting: whether thinking is shown. */
  readonly reasoningLevel?: string;
  /** OpenClaw's setting: whether commands run outside the sandbox. */
  readonly elevatedLevel?: string;
  /** OpenClaw's setting: what is shown of a reply's tokens. */
  readonly responseUsage?: "on" | "off" | "tokens" | "full";
  /** OpenClaw's setting: when replies are spoken. */
  readonly ttsAuto?: string;
  /** What happens to words that arrive while a turn runs. */
  readonly queueMode?: QueueMode;
  /** How long waiting words are collected before a turn begins, in milliseconds. */
  readonly queueDebounceMs?: number;
  /** The most messages that wait. */
  readonly queueCap?: number;
  /** What happens to messages beyond `queueCap`. */
  readonly queueDrop?: "old" | "new" | "summarize";
  /** Tokens of the last call's prompt, as its writer counts them. */
  readonly inputTokens?: number;
  /** Tokens of the last call's reply. */
  readonly outputTokens?: number;
  /** Tokens of the context, as far as known. */
  readonly totalTokens?: number;
  /** False: `totalTokens` is not to be trusted. */
  readonly totalTokensFresh?: boolean;
  /** The model's window. */
  readonly contextTokens?: number;
  /** The number of compactions since the session began. */
  readonly compactionCount?: number;
  /** When memory was last flushed, and how many compactions there had been. Whether one is due is not decided by these. */
  readonly memoryFlushAt?: number;
  /** `compactionCount` at the last memory flush. */
  readonly memoryFlushCompactionCount?: number;
  /** True once a turn of the session has sent its system prompt. */
  readonly systemSent?: boolean;
  /** True when the last turn was aborted. */
  readonly abortedLastRun?: boolean;
  /** OpenClaw's last heartbeat message. */
  readonly lastHeartbeatText?: string;
  /** When it was sent, in milliseconds since 1970. */
  readonly lastHeartbeatSentAt?: number;
  /** The sessions that had the key before, oldest first. */
  readonly previousSessionIds?: readonly string[];
  readonly [field: string]: unknown;
}

/** A clock may be wrong by so much before a writer's `updatedAt` is not believed. */
const maxAheadMs = 5 * 60 * 1000;

/** The activity time after a save or append: never before the old one, never far in the future. */
export function nextUpdatedAtMs(
  oldMs: number,
  claimedMs: unknown,
  nowMs: number,
): { readonly updatedAtMs: number; readonly wasClamped: boolean } {
  if (typeof claimedMs !== "number" || !Number.isFinite(claimedMs)) return { updatedAtMs: oldMs, wasClamped: false };
  const wasClamped = claimedMs > nowMs + maxAheadMs;
  return { updatedAtMs: Math.max(oldMs, wasClamped ? nowMs : Math.trunc(claimedMs)), wasClamped };
}

/** Sets the fields of a patch; `undefined` removes one. Own properties only, `__proto__` included: nothing is lost or run. */
export function patchEntry(entry: SessionEntry, patch: Readonly<Record<string, unknown>>): SessionEntry {
  // A copy by JSON takes fields at once. An object that is made of a list of fields takes time for each.
  const own: Record<string, unknown> = { ...ownEntry(entry) };
  for (const [field, value] of Object.entries(patch)) {
    const copy = jsonOf(value);
    if (copy === undefined) delete own[field];
    else Object.defineProperty(own, field, { value: copy, enumerable: true, configurable: true, writable: true });
  }
  return ownEntry(own);
}

/**
 * A copy of the caller's entry, as plain JSON.
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
 * As `ownEntry`, of an entry that is to be written.
 * @throws {ThroughlineError} INPUT_INVALID also when it is nested deeper or larger than a store takes
 */
export function givenEntry(entry: unknown): SessionEntry {
  if (isAllowedAsLarge(entry)) return allowedCopy(entry);
  // A copy of an object with many members takes long.
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
 * A copy of the fields that an append sets, as plain JSON: the caller may change its own while the append waits. What JSON
 * leaves out is `undefined`, and removes its field. Not of the whole entry, which may hold what another program nested.
 * @throws {ThroughlineError} INPUT_INVALID when they are no object of JSON, or nested deeper or larger than a store takes
 */
export function givenPatch(patch: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch))
    throw refused("INPUT_INVALID", "The fields of an entry are an object.", {});
  try {
    assertFewMembers(patch);
    assertEntryNesting(patch);
    const fields = Object.entries(patch).map(([field, value]) => [field, jsonOf(value)] as const);
    const own = Object.fromEntries(fields);
    // Once more as what JSON makes of them: a `toJSON` may nest what has it.
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
