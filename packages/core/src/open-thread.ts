import { withSystemPorts } from "./node/system-ports.ts";
import { portKinds } from "./port-kinds.ts";
import { assertKnownOptions, optionKinds, type OptionTable } from "./option-checks.ts";
import { applyRoute } from "./delivery.ts";
import { forkSession } from "./fork-session.ts";
import { keptOnReset } from "./merge-entry.ts";
import { loadExisting, openSession, updateEntry, type OpenedSession } from "./open-session.ts";
import type { Clock, RandomSource } from "./ports.ts";
import { refused } from "./refused.ts";
import { patchEntry, type SessionEntry } from "./session-entry.ts";
import { quote } from "./session-id.ts";
import { formatSessionKey, parseSessionKey } from "./session-key.ts";
import { sessionRef, type SessionRef } from "./session-ref.ts";
import type { SessionStore } from "./session-store.ts";
import { hasErrorCode } from "./throughline-error.ts";

/** Sets the id, the kind and the start of a thread. */
export interface OpenThreadOptions {
  /** Measures the time of the new entry. @default the system's clock */
  readonly clock?: Clock;
  /** Creates the ids of new sessions. @default the system's randomness */
  readonly random?: RandomSource;
  /** States the thread's id as the channel does. */
  readonly id: string | number;
  /** States whether the channel calls it a thread or a topic, which is part of the key. @default "thread" */
  readonly kind?: "thread" | "topic";
  /** Starts the thread with the current records of the parent. @default false */
  readonly fork?: boolean;
  /** Aborts the call, which then throws ABORTED. */
  readonly signal?: AbortSignal;
}

const { either, flag, number, oneOf, required, signal: signalKind, text } = optionKinds;
const threadTable: OptionTable<OpenThreadOptions> = {
  clock: portKinds.clock,
  random: portKinds.random,
  id: required(either(text, number())),
  kind: oneOf(["thread", "topic"]),
  fork: flag,
  signal: signalKind,
};

/**
 * Opens the session of a thread or topic below a conversation, and creates it if needed. The thread has its own key,
 * transcript and entry, with the settings of the conversation, and its replies go to the thread. The two sessions do
 * not see each other's messages.
 * @throws {ThroughlineError} SESSION_NOT_FOUND for the parent, INPUT_INVALID for an id that cannot stand in a key, and
 * for a parent that cannot have threads
 */
export async function openThread(
  store: SessionStore,
  parent: SessionRef,
  options: OpenThreadOptions,
): Promise<OpenedSession> {
  assertKnownOptions<OpenThreadOptions>("openThread", options, threadTable);
  const { clock, random, fork = false } = withSystemPorts(options);
  const ref = threadRef(parent, options.kind ?? "thread", String(options.id));
  const state = await loadExisting(store, parent);
  const found = await store.load(ref);
  if (found !== null) return { state: found, isNew: false };
  const entry = threadEntry(state.entry, parent, options.id, clock.nowMs());
  if (!fork || state.head.lastSeq === 0) return openSession(store, ref, { random, entry });
  const sessionId = random.uuid();
  const signal = options.signal === undefined ? {} : { signal: options.signal };
  try {
    await forkSession(store, parent, ref, { sessionId, ...signal });
  } catch (error) {
    // Another caller opened the thread in the meantime.
    if (!hasErrorCode(error, "REVISION_CONFLICT", "SESSION_EXISTS")) throw error;
    return { state: await loadExisting(store, ref), isNew: false };
  }
  return { state: await updateEntry(store, ref, (own) => patchEntry(own, entry)), isNew: true };
}

/** @throws {ThroughlineError} INPUT_INVALID, KEY_INVALID */
function threadRef(parent: SessionRef, kind: "thread" | "topic", id: string): SessionRef {
  const parsed = parseSessionKey(parent.key);
  if (parsed.form !== "agent" || parsed.suffix !== null)
    throw refused("INPUT_INVALID", `${quote(parent.key)} cannot have threads.`, { key: parent.key });
  if (id === "" || id.includes(":"))
    throw refused("INPUT_INVALID", `${quote(id)} cannot be the id of a ${kind}.`, { id });
  const { namespace, agentId } = parent;
  return sessionRef({ namespace, agentId, key: formatSessionKey({ ...parsed, suffix: { kind, id } }) });
}

function threadEntry(
  parent: SessionEntry,
  { key }: SessionRef,
  threadId: string | number,
  nowMs: number,
): Readonly<Record<string, unknown>> {
  const { label: _label, spawned: _spawned, ...kept } = keptOnReset(parent);
  const { sessionId: _id, ...entry } = applyRoute({ sessionId: "", ...kept }, { threadId });
  return { ...entry, parentSessionKey: key, updatedAt: nowMs };
}
