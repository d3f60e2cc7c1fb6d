import { assertKnownOptions, optionKinds, type OptionKind, type OptionTable } from "@throughline/core/internal";
import type { MirrorParams } from "./mirror-message.ts";
import type { SendPolicyParams } from "./resolve-policy.ts";
import type { InboundParams, LastRouteParams, UpdateEntryParams } from "./session-entries.ts";
import type { LoadSessionStoreOptions, UpdateStoreOptions } from "./session-store-file.ts";
import type { LockOptions } from "./store-lock.ts";

const { callback, either, flag, integer, listOf, number, object, orNull, required, signal, text } = optionKinds;

const place = { storePath: required(text), sessionKey: required(text) };

const lock: OptionTable<LockOptions> = {
  timeoutMs: number({ min: 0 }),
  pollIntervalMs: number({ min: 1 }),
  staleMs: number({ min: 1 }),
};

const loading: OptionTable<LoadSessionStoreOptions> = { skipCache: flag, withBlobs: flag };
const saving: OptionTable<UpdateStoreOptions> = { ...lock, activeSessionKey: text, skipMaintenance: flag };
const update: OptionTable<UpdateEntryParams> = { ...place, update: required(callback) };
const inbound: OptionTable<InboundParams> = {
  ...place,
  ctx: required(object),
  groupResolution: orNull(object),
  createIfMissing: flag,
};
const route: OptionTable<LastRouteParams> = {
  ...place,
  deliveryContext: object,
  ctx: object,
  groupResolution: orNull(object),
  channel: text,
  to: text,
  accountId: text,
  threadId: either(text, integer()),
};
const mirror: OptionTable<MirrorParams> = {
  storePath: text,
  agentId: text,
  sessionKey: required(text),
  text,
  mediaUrls: listOf(text),
  idempotencyKey: text,
  expectedSessionId: text,
  timeoutMs: number({ min: 0 }),
  signal,
};
const policy: OptionTable<SendPolicyParams> = {
  cfg: orNull(object),
  entry: orNull(object),
  sessionKey: text,
  channel: text,
  chatType: text,
};
const path: OptionTable<{ readonly agentId?: string }> = { agentId: text };

export const paramTables: Readonly<
  Record<CheckedFunction, readonly ["options" | "params", Readonly<Record<string, OptionKind>>]>
> = {
  loadSessionStore: ["options", loading],
  updateSessionStore: ["options", saving],
  withSessionStoreLock: ["options", lock],
  updateSessionStoreEntry: ["params", update],
  recordSessionMetaFromInbound: ["params", inbound],
  updateLastRoute: ["params", route],
  appendAssistantMessageToSessionTranscript: ["params", mirror],
  resolveStorePath: ["options", path],
  resolveSendPolicy: ["params", policy],
};

export type CheckedFunction =
  | "loadSessionStore"
  | "updateSessionStore"
  | "withSessionStoreLock"
  | "updateSessionStoreEntry"
  | "recordSessionMetaFromInbound"
  | "updateLastRoute"
  | "appendAssistantMessageToSessionTranscript"
  | "resolveStorePath"
  | "resolveSendPolicy";

/**
 * Refuses a parameter that the function does not have, that has another type, or that is out of range. The check runs
 * before the function touches a store.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function checkParams(call: CheckedFunction, given: unknown): void {
  const [argument, table] = paramTables[call];
  if (given === undefined && argument === "options") return;
  assertKnownOptions<object>(call, given, table as OptionTable<object>, argument);
}
