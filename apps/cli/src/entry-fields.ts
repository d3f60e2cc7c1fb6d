import { nearestName } from "@throughline/core/internal";

/** What a field of an entry holds; a list names all of its values. */
type FieldKind = "text" | "number" | "flag" | "any" | readonly string[];

/** Every field of an entry that some package of ours or OpenClaw acts on. Other fields may hold anything. */
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
  handedOff: "any",
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
  // OpenClaw has more of these words than are known here, and keeps any.
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

/** Shorter names are one edit from too many words. */
const shortestMisspelt = 5;

/** Why somebody who sets a field by hand does not mean that. */
interface EntryFieldProblem {
  /** A sentence that names the field. */
  readonly message: string;
  /** The field that was meant, of a misspelt one. */
  readonly meant: string | null;
  /** The values the field takes; null: those of its kind. */
  readonly values: readonly string[] | null;
}

/**
 * The problem of a field that a person sets; null if there is none. Its name differs from a known one by case or one
 * letter, or the field does not allow its value. Null: nothing. Programs may write any field, and stores keep it;
 * whoever takes fields from a person asks here first.
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

/** The names of the fields of an entry that programs read. */
export function entryFieldNames(): readonly string[] {
  return Object.keys(entryFields);
}

/** The known field of which a name is a misspelling; null for a known name and for one that is far from all of them. */
export function misspeltEntryField(field: string): string | null {
  const known = Object.keys(entryFields);
  if (known.includes(field) || field.length > 100) return null;
  return nearestName(field, known, { maxEdits: 1, minLength: shortestMisspelt });
}
