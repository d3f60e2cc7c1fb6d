import type { AgentTool, Clock, RandomSource, SessionStore } from "@throughline/core";
import type { SpawnLimits } from "./spawn-session.ts";
import {
  assertKnownOptions,
  optionKinds,
  type OptionTable,
  systemClock,
  systemRandom,
} from "@throughline/core/internal";
import type { SendPolicy } from "@throughline/policy";
import { appendDelivery, type SessionDeliverer } from "./deliver-message.ts";
import { createHistoryTool } from "./history-tool.ts";
import { createListTool } from "./list-tool.ts";
import { createSendTool } from "./send-tool.ts";
import type { SessionToolContext } from "./session-tool-context.ts";
import { createSpawnTool } from "./spawn-tool.ts";
import { SessionToolRefusal } from "./tool-refusal.ts";
import { visibleSessions, type SessionVisibility } from "./visible-sessions.ts";

/** Sets the store, the limits and the policies of `createSessionTools`. */
export interface SessionToolsOptions {
  /** Holds the sessions that the tools read and write. */
  readonly store: SessionStore;
  /** Limits which sessions the calling session may see and address. @default "tree" */
  readonly visibility?: SessionVisibility | undefined;
  /**
   * Limits how many sessions agents may spawn.
   * @default 3 generations, 8 active children, 32 active descendants, active for an hour
   */
  readonly spawnLimits?: SpawnLimits | undefined;
  /**
   * Decides into which sessions agents may send, in the form that `readSendPolicy` of the package `policy` returns. A
   * session entry's `sendPolicy` field takes precedence.
   * @default null: sending is allowed unless the entry says `deny`
   */
  readonly sendPolicy?: SendPolicy | null | undefined;
  /**
   * Delivers a message to its target session.
   * @default puts the message into the transcript, where the session's next turn finds it
   */
  readonly deliver?: SessionDeliverer | undefined;
  /** Limits how long the default delivery waits for a running turn of the target, in milliseconds. @default 15_000 */
  readonly waitMs?: number | undefined;
  /** Limits the length of one message, in characters. @default 32_000 */
  readonly maxMessageLength?: number | undefined;
  /** Limits how many sessions may pass a message on before a person has to write again. @default 5 */
  readonly maxHops?: number | undefined;
  /** Limits one answer of `sessions_history`, in bytes. @default 80_000 */
  readonly maxHistoryBytes?: number | undefined;
  /** Limits each message in an answer of `sessions_history`, in characters. @default 4000 */
  readonly maxHistoryText?: number | undefined;
  /** Supplies the time of turns, waits and entries. @default the system clock */
  readonly clock?: Clock | undefined;
  /** Generates the ids of spawned sessions. @default the system's random source */
  readonly random?: RandomSource | undefined;
}

const count = optionKinds.integer({ min: 1 });

const table: OptionTable<SessionToolsOptions> = {
  store: optionKinds.required(optionKinds.objectWith("load", "append")),
  visibility: optionKinds.oneOf(["self", "tree", "agent", "all"]),
  spawnLimits: optionKinds.objectOf<SpawnLimits>({
    maxDepth: optionKinds.integer({ min: 0 }),
    maxChildren: optionKinds.integer({ min: 0 }),
    maxTotal: optionKinds.integer({ min: 0 }),
    idleMs: optionKinds.number({ min: 0 }),
  }),
  sendPolicy: optionKinds.orNull(optionKinds.object),
  deliver: optionKinds.callback,
  waitMs: optionKinds.integer({ min: 0 }),
  maxMessageLength: count,
  maxHops: optionKinds.integer({ min: 0 }),
  maxHistoryBytes: count,
  maxHistoryText: count,
  clock: optionKinds.objectWith("nowMs", "sleep"),
  random: optionKinds.objectWith("uuid"),
};

/**
 * Creates the tools `sessions_spawn`, `sessions_list`, `sessions_history` and `sessions_send`. A call acts for the
 * session that it belongs to. The tools reach the sessions that `visibility` allows, and never another agent or
 * namespace. A session out of reach is answered like a session that does not exist. A refusal is an answer to the model
 * (`isError`, `details.reason`), never an exception.
 * @throws {ThroughlineError} INPUT_INVALID for an option that is missing, unknown, of another type or out of range;
 *   from `run`: ABORTED, and what the store throws
 */
export function createSessionTools(options: SessionToolsOptions): readonly AgentTool[] {
  assertKnownOptions<SessionToolsOptions>("createSessionTools", options, table);
  const { store, visibility = "tree", clock = systemClock, random = systemRandom } = options;
  const context: SessionToolContext = {
    sessionsOf({ ref, signal }) {
      if (ref === undefined)
        throw new SessionToolRefusal("no-session", "This tool works only in a session, and the call belongs to none.");
      return visibleSessions(store, ref, visibility, signal);
    },
    deliver: options.deliver ?? appendDelivery(store, { clock, waitMs: options.waitMs ?? 15_000 }),
    spawnLimits: options.spawnLimits ?? {},
    sendPolicy: options.sendPolicy ?? null,
    limits: {
      totalBytes: options.maxHistoryBytes ?? 80_000,
      textLength: options.maxHistoryText ?? 4000,
      messageLength: options.maxMessageLength ?? 32_000,
      hops: options.maxHops ?? 5,
    },
    clock,
    random,
  };
  return [createSpawnTool(context), createListTool(context), createHistoryTool(context), createSendTool(context)];
}
