import { nearestName } from "@throughline/core/internal";

type FieldKind = "text" | "number" | "flag" | "any" | readonly string[];

/** Throughline or OpenClaw acts on each of these fields. Other fields may hold any value. */
const entryFields: Readonly<Record<string, FieldKind>> = {
  sessionId: "text",
  updatedAt: "number",
  sessionFile: "text",
  spawnedBy: "text",
  spawnDepth: "number",
  parentSessionKey: "text",
  sdkSessionId: "text",
  cliSessionIds: "any",
  claudeCliSessionId: "text",
  label: "text",
  displayName: "text",
  title: "text",
  titleBy: ["rules", "model", "import"],
  cwd: "text",
  repository: "text",
  branch: "text",
  handedOff: "any",
  allowedEdits: "any",
  chatType: ["direct", "group", "channel", "dm"],
  groupId: "text",
  subject: "text",
  groupChannel: "text",
  space: "text",
  sendPolicy: ["allow", "deny"],
  groupActivation: ["mention", "always"],
  groupActivationNeedsSystemIntro: "flag",
  channel: "text",
  lastChannel: "text",
  lastTo: "text",
  lastAccountId: "text",
  lastThreadId: "any",
  deliveryContext: "any",
  origin: "any",
  providerOverride: "text",
  modelOverride: "text",
  modelOverrideSource: "text",
  authProfileOverride: "text",
  authProfileOverrideSource: ["auto", "user"],
  authProfileOverrideCompactionCount: "number",
  modelProvider: "text",
  model: "text",
  execHost: "text",
  execSecurity: "text",
  execAsk: "text",
  execNode: "text",
  thinkingLevel: "text",
  verboseLevel: "text",
  reasoningLevel: "text",
  elevatedLevel: "text",
  fastMode: "any",
  responseUsage: ["on", "off", "tokens", "full"],
  ttsAuto: "text",
  // OpenClaw has more modes than this project knows, and keeps any text.
  queueMode: "text",
  queueDebounceMs: "number",
  queueCap: "number",
  queueDrop: ["old", "new", "summarize"],
  inputTokens: "number",
  outputTokens: "number",
  totalTokens: "number",
  totalTokensFresh: "flag",
  contextTokens: "number",
  compactionCount: "number",
  memoryFlushAt: "number",
  memoryFlushCompactionCount: "number",
  systemSent: "flag",
  abortedLastRun: "flag",
  lastHeartbeatText: "text",
  lastHeartbeatSentAt: "number",
  previousSessionIds: "any",
};

/** A shorter name is one edit away from too many words. */
const shortestMisspelt = 5;

interface EntryFieldProblem {
  readonly message: string;
  /** A misspelled name probably means this field; null for other problems. */
  readonly meant: string | null;
  /** The field allows only these values; null means all values of its kind. */
  readonly values: readonly string[] | null;
}

/**
 * Returns the problem of a field that a person sets, or null without a problem. A problem is a name that differs from a
 * known name by case or one letter, or a value that the field does not allow. Programs may write any field, and stores
 * keep it, so only callers that accept fields from people use this check.
 */
export function findEntryFieldProblem(field: string, value: unknown): EntryFieldProblem | null {
  const kind = Object.hasOwn(entryFields, field) ? entryFields[field] : undefined;
  if (kind === undefined) {
    const meant = misspeltEntryField(field);
    if (meant === null) return null;
    const message = `Nothing reads the field ${JSON.stringify(field)}; the field is ${JSON.stringify(meant)}.`;
    return { message, meant, values: null };
  }
  if (typeof kind !== "string") {
    if (typeof value === "string" && kind.includes(value)) return null;
    const message = `${field} takes ${kind.join(", ")}, not ${JSON.stringify(value)}.`;
    return { message, meant: null, values: kind };
  }
  const isFit =
    kind === "any" ||
    (kind === "text" && typeof value === "string") ||
    (kind === "number" && typeof value === "number") ||
    (kind === "flag" && typeof value === "boolean");
  const wanted = { text: "text", number: "a number", flag: "true or false", any: "anything" }[kind];
  return isFit
    ? null
    : { message: `${field} takes ${wanted}, not ${JSON.stringify(value)}.`, meant: null, values: null };
}

export function entryFieldNames(): readonly string[] {
  return Object.keys(entryFields);
}

/** Returns the known field that a name misspells; null for a known name and for a name that resembles no field. */
export function misspeltEntryField(field: string): string | null {
  const known = Object.keys(entryFields);
  if (known.includes(field) || field.length > 100) return null;
  return nearestName(field, known, { maxEdits: 1, minLength: shortestMisspelt });
}
