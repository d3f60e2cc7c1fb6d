import { assertKnownOptions, optionKinds, type OptionTable } from "./option-checks.ts";
import { normalizeDelivery } from "./delivery.ts";
import { withoutOldBlobs } from "./entry-blobs.ts";
import { patchEntry, type SessionEntry } from "./session-entry.ts";

export interface MergeEntryOptions {
  readonly nowMs: number;
  /**
   * `touch` counts as activity: `updatedAt` becomes the newest of the old time, the patch's time and now. `preserve`
   * keeps the old time, because a mere description is not activity.
   * @default "touch"
   */
  readonly activity?: "touch" | "preserve";
}

const { number, oneOf, required } = optionKinds;
const mergeTable: OptionTable<MergeEntryOptions> = {
  nowMs: required(number()),
  activity: oneOf(["touch", "preserve"]),
};

/**
 * Merges a patch into an entry, by rules that other programs share. Fields that the patch does not name stay; a field
 * set to `undefined` is removed. A new model without a provider removes the old provider, because it belonged to the
 * old model. The time of activity never decreases. Delivery context and last route agree afterwards.
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function mergeEntry(
  entry: SessionEntry,
  patch: Readonly<Record<string, unknown>>,
  options: MergeEntryOptions,
): SessionEntry {
  assertKnownOptions<MergeEntryOptions>("mergeEntry", options, mergeTable);
  const { nowMs, activity = "touch" } = options;
  const { updatedAt: claimed, ...fields } = withoutOldBlobs(entry, patch);
  const isOtherModel = typeof fields["model"] === "string" && fields["model"] !== entry.model;
  const provider = isOtherModel && !Object.hasOwn(fields, "modelProvider") ? { modelProvider: undefined } : {};
  const times = [entry.updatedAt, activity === "touch" ? claimed : undefined, activity === "touch" ? nowMs : undefined];
  const known = times.filter((time): time is number => typeof time === "number" && Number.isFinite(time));
  const updatedAt = known.length === 0 ? {} : { updatedAt: Math.max(...known) };
  const merged = patchEntry(entry, { ...provider, ...fields, ...updatedAt });
  const concernsRoute = routeFields.some((field) => Object.hasOwn(fields, field));
  return concernsRoute ? normalizeDelivery(withPatchedRoute(merged, fields)) : merged;
}

const routeFields = ["deliveryContext", "lastChannel", "lastTo", "lastAccountId", "lastThreadId", "channel"] as const;

/** A patch may name a last* field without the context. The new value then replaces the context's value too. */
function withPatchedRoute(entry: SessionEntry, fields: Readonly<Record<string, unknown>>): SessionEntry {
  if (Object.hasOwn(fields, "deliveryContext")) {
    return patchEntry(entry, {
      lastChannel: undefined,
      lastTo: undefined,
      lastAccountId: undefined,
      lastThreadId: undefined,
    });
  }
  const stated: Record<string, unknown> = {};
  for (const [field, name] of [
    ["lastChannel", "channel"],
    ["lastTo", "to"],
    ["lastAccountId", "accountId"],
    ["lastThreadId", "threadId"],
  ] as const) {
    if (Object.hasOwn(fields, field)) stated[name] = fields[field];
  }
  const context = Object.fromEntries(
    Object.entries({ ...entry.deliveryContext, ...stated }).filter(([, value]) => value !== undefined),
  );
  return patchEntry(entry, { deliveryContext: context });
}

/** Drops fields without content: an empty text, an empty list, null or `undefined` must never erase a stored value. */
export function statedFields(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => saysSomething(value)));
}

function saysSomething(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value === "string") return value.trim() !== "";
  return !Array.isArray(value) || value.length > 0;
}

/**
 * A session keeps these fields when it is reset: its settings, its route and its owner, but no counters. Every reset
 * uses `keptOnReset`, so that no second list can differ.
 */
const keptFields = [
  "label",
  "displayName",
  "cwd",
  "chatType",
  "groupId",
  "subject",
  "groupChannel",
  "space",
  "channel",
  "lastChannel",
  "lastTo",
  "lastAccountId",
  "lastThreadId",
  "deliveryContext",
  "origin",
  "sendPolicy",
  "groupActivation",
  "groupActivationNeedsSystemIntro",
  "thinkingLevel",
  "fastMode",
  "verboseLevel",
  "reasoningLevel",
  "elevatedLevel",
  "responseUsage",
  "ttsAuto",
  "providerOverride",
  "modelOverride",
  "modelOverrideSource",
  "modelProvider",
  "model",
  "contextTokens",
  "authProfileOverride",
  "authProfileOverrideSource",
  "execHost",
  "execSecurity",
  "execAsk",
  "execNode",
  "queueMode",
  "queueDebounceMs",
  "queueCap",
  "queueDrop",
  "spawnedBy",
  "spawnDepth",
  "spawned",
  "spawnedWorkspaceDir",
  "subagentRole",
  "subagentControlScope",
  "parentSessionKey",
] as const;

/**
 * Returns the fields of an entry that the next session takes over at a reset, for `resetSession`'s `keep`. Counters,
 * the SDK's session ids, flush marks and unknown fields stay with the old session, which is archived. The facade, the
 * command and programs over the store all use this function.
 */
export function keptOnReset(entry: SessionEntry): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    keptFields.flatMap((field) => (Object.hasOwn(entry, field) ? [[field, entry[field]]] : [])),
  );
}
