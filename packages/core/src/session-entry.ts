import { assertEntryNesting } from "./nesting.ts";
import { refused } from "./refused.ts";
import { ThroughlineError } from "./throughline-error.ts";

/** Where a reply to the session goes. */
export interface DeliveryContext {
  readonly channel?: string;
  readonly to?: string;
  readonly accountId?: string;
  readonly threadId?: string | number;
}

/** Where a session came from. */
export interface SessionOrigin extends DeliveryContext {
  readonly label?: string;
  readonly provider?: string;
  readonly surface?: string;
  readonly chatType?: string;
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
  readonly sessionId: string;
  /** UTC milliseconds. */
  readonly updatedAt?: number;
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
  readonly claudeCliSessionId?: string;
  /** What a person named the session. */
  readonly label?: string;
  /** A name made from the conversation; `label` goes before it. */
  readonly title?: string;
  /** Who made the title: `rules`, `model`, or `import` where the source states one. */
  readonly titleBy?: string;
  readonly displayName?: string;
  /** `direct`, `group` or `channel`; `dm` is an old word for `direct`. */
  readonly chatType?: string;
  readonly groupId?: string;
  readonly subject?: string;
  readonly groupChannel?: string;
  readonly space?: string;
  readonly sendPolicy?: "allow" | "deny";
  readonly groupActivation?: "mention" | "always";
  readonly groupActivationNeedsSystemIntro?: boolean;
  readonly channel?: string;
  readonly lastChannel?: string;
  readonly lastTo?: string;
  readonly lastAccountId?: string;
  readonly lastThreadId?: string | number;
  readonly deliveryContext?: DeliveryContext;
  readonly origin?: SessionOrigin;
  readonly providerOverride?: string;
  readonly modelOverride?: string;
  readonly authProfileOverride?: string;
  readonly authProfileOverrideSource?: "auto" | "user";
  readonly authProfileOverrideCompactionCount?: number;
  readonly modelProvider?: string;
  readonly model?: string;
  readonly execHost?: string;
  readonly execSecurity?: string;
  readonly execAsk?: string;
  readonly execNode?: string;
  readonly thinkingLevel?: string;
  readonly verboseLevel?: string;
  readonly reasoningLevel?: string;
  readonly elevatedLevel?: string;
  readonly responseUsage?: "on" | "off" | "tokens" | "full";
  readonly ttsAuto?: string;
  readonly queueMode?: QueueMode;
  readonly queueDebounceMs?: number;
  readonly queueCap?: number;
  readonly queueDrop?: "old" | "new" | "summarize";
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly totalTokens?: number;
  /** False: `totalTokens` is not to be trusted. */
  readonly totalTokensFresh?: boolean;
  /** The model's window. */
  readonly contextTokens?: number;
  readonly compactionCount?: number;
  /** When memory was last flushed, and how many compactions there had been. Whether one is due is not decided by these. */
  readonly memoryFlushAt?: number;
  readonly memoryFlushCompactionCount?: number;
  readonly systemSent?: boolean;
  readonly abortedLastRun?: boolean;
  readonly lastHeartbeatText?: string;
  readonly lastHeartbeatSentAt?: number;
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
  const fields = new Map(Object.entries(entry));
  for (const [field, value] of Object.entries(patch)) {
    if (value === undefined) fields.delete(field);
    else fields.set(field, value);
  }
  return ownEntry(Object.fromEntries(fields));
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
 * @throws {ThroughlineError} INPUT_INVALID also when it is nested deeper than a store takes
 */
export function givenEntry(entry: unknown): SessionEntry {
  const own = ownEntry(entry);
  assertEntryNesting(own);
  return own;
}

/**
 * A copy of the fields that an append sets, as plain JSON: the caller may change its own while the append waits. What JSON
 * leaves out is `undefined`, and removes its field. Not of the whole entry, which may hold what another program nested.
 * @throws {ThroughlineError} INPUT_INVALID when they are no object of JSON, or nested deeper than a store takes
 */
export function givenPatch(patch: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch))
    throw refused("INPUT_INVALID", "The fields of an entry are an object.", {});
  try {
    assertEntryNesting(patch);
    const fields = Object.entries(patch).map(([field, value]) => [field, jsonOf(value)] as const);
    const own = Object.fromEntries(fields);
    // Once more as what JSON makes of them: a `toJSON` may nest what has it.
    assertEntryNesting(own);
    return own;
  } catch (cause) {
    if (ThroughlineError.isInstance(cause)) throw cause;
    throw refused("INPUT_INVALID", "The fields of the entry are not JSON.", {}, cause);
  }
}

function jsonOf(value: unknown): unknown {
  const text = JSON.stringify(value) as string | undefined;
  return text === undefined ? undefined : JSON.parse(text);
}
