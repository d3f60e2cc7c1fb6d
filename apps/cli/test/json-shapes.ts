import { expect } from "vitest";
import { objects } from "./harness.ts";

/** A shape: the exact keys with a check of each value; written by hand from the contract, not from the code. */
type Shape = Readonly<Record<string, (value: unknown) => boolean>>;

const text = (value: unknown): boolean => typeof value === "string";
const flag = (value: unknown): boolean => typeof value === "boolean";
const count = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 0;
const number = (value: unknown): boolean => typeof value === "number";
const anything = (): boolean => true;
const list = (value: unknown): boolean => Array.isArray(value);
const listOfTexts = (value: unknown): boolean => Array.isArray(value) && value.every(text);
const or = (check: (value: unknown) => boolean) => (value: unknown) => value === null || check(value);
const one =
  (...words: readonly unknown[]) =>
  (value: unknown) =>
    words.includes(value);
const object = (shape: Shape) => (value: unknown) => problemOf(value, shape) === null;
const listOf = (shape: Shape) => (value: unknown) =>
  Array.isArray(value) && value.every((item) => problemOf(item, shape) === null);

function problemOf(value: unknown, shape: Shape): string | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return "no object";
  const keys = Object.keys(value).toSorted().join(" ");
  const expected = Object.keys(shape).toSorted().join(" ");
  if (keys !== expected) return `keys ${keys}, not ${expected}`;
  const wrong = Object.entries(shape).find(([key, check]) => !check((value as Record<string, unknown>)[key]));
  return wrong === undefined ? null : `${wrong[0]} is ${JSON.stringify((value as Record<string, unknown>)[wrong[0]])}`;
}

const kind = { kind: text };
const lostLine: Shape = { line: count, bytes: count, reason: text };
const totals: Shape = {
  sources: count,
  imported: count,
  grown: count,
  unchanged: count,
  skipped: count,
  refused: count,
  records: count,
  repaired: count,
  lost: count,
};

const shapes: Readonly<Record<string, Shape>> = {
  end: { ...kind, count, nextCursor: or(text) },
  error: {
    ...kind,
    code: text,
    message: text,
    remedy: text,
    retryable: flag,
    outcome: or(one("not-applied", "unknown")),
    details: object({}),
  },
  session: {
    ...kind,
    agentId: text,
    key: text,
    sessionId: text,
    label: or(text),
    state: one("active", "archived"),
    archiveId: or(text),
    recordCount: count,
    messageCount: count,
    contextTokens: or(count),
    windowTokens: or(count),
    contextPercent: or(number),
    model: or(text),
    createdAtMs: count,
    updatedAtMs: count,
    incomplete: or(one("copy", "fork", "import")),
  },
  record: {
    ...kind,
    seq: count,
    id: text,
    parentId: or(text),
    type: text,
    side: flag,
    tsMs: or(count),
    record: anything,
  },
  ack: { ...kind, seq: count, id: text, headId: or(text), durability: one("none", "process", "disk") },
  context: {
    ...kind,
    key: text,
    sessionId: text,
    provider: text,
    model: or(text),
    thinkingLevel: text,
    headId: or(text),
    lastSeq: count,
    recordsInContext: count,
    messages: list,
    system: or(text),
    gauge: object({
      tokens: count,
      source: one("actual", "actual+delta", "tokenizer", "heuristic"),
      lowTokens: count,
      highTokens: count,
      windowTokens: or(count),
      percent: or(number),
    }),
    breakdown: object({
      systemTokens: count,
      toolsTokens: count,
      summaryTokens: count,
      messageTokens: count,
      toolResultTokens: count,
    }),
    repairs: listOf({ rule: text, recordId: text, before: or(text), after: or(text) }),
    omitted: listOf({ fromSeq: count, toSeq: count, reason: text }),
  },
  hit: {
    ...kind,
    key: text,
    sessionId: text,
    seq: count,
    id: text,
    role: or(text),
    tsMs: or(count),
    score: number,
    snippet: text,
    highlights: (value) =>
      Array.isArray(value) && value.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every(count)),
  },
  import: {
    ...kind,
    sources: listOf({
      path: text,
      format: text,
      key: or(text),
      sessionId: or(text),
      state: one("imported", "grown", "unchanged", "skipped", "refused"),
      records: count,
      derived: count,
      repaired: count,
      lost: listOf(lostLine),
    }),
    totals: object(totals),
  },
  finding: {
    ...kind,
    code: text,
    severity: one("info", "warning", "error"),
    path: or(text),
    key: or(text),
    line: or(count),
    byteOffset: or(count),
    recordId: or(text),
    message: text,
    remedy: text,
    repaired: flag,
  },
  setting: {
    ...kind,
    key: text,
    value: anything,
    source: one("default", "preset", "file", "environment", "flag"),
    default: anything,
    from: text,
    given: anything,
    notes: anything,
  },
  export: {
    ...kind,
    key: or(text),
    sessionId: or(text),
    format: one("jsonl", "openclaw", "pi", "claw0", "claude-code", "codex", "gemini"),
    path: text,
    records: count,
    sizeBytes: count,
  },
  handoff: {
    ...kind,
    key: text,
    sessionId: text,
    format: one("claude-code", "codex", "gemini", "pi", "openclaw"),
    path: text,
    cwd: text,
    records: count,
    sizeBytes: count,
    command: text,
  },
  copy: {
    ...kind,
    agentId: text,
    key: text,
    sessionId: text,
    state: one("imported", "grown", "unchanged", "refused"),
    records: count,
  },
  demo: {
    ...kind,
    ok: flag,
    elapsedMs: count,
    steps: listOf({ name: text, ok: flag, summary: text, figures: anything }),
  },
  note: { ...kind, message: text },
  event: { ...kind, name: text, key: text, turnId: or(text), message: text, data: anything },
  compaction: {
    ...kind,
    key: text,
    sessionId: text,
    state: one("compacted", "planned", "nothing", "superseded"),
    reason: or(one("too-few-messages", "no-place", "no-gain", "not-covered", "no-checkpoint")),
    id: or(text),
    seq: or(count),
    firstKeptSeq: or(count),
    tokensBefore: or(count),
    tokensAfter: or(count),
    messagesRemoved: or(count),
    source: or(one("checkpoint", "model", "older-checkpoint", "extractive", "stub")),
    provider: or(text),
    needsRetry: or(flag),
  },
  checkpoint: {
    ...kind,
    key: text,
    sessionId: text,
    id: or(text),
    seq: or(count),
    coversToSeq: or(count),
    tokensAtCheckpoint: count,
    messageCountAtCheckpoint: or(count),
    summary: or(text),
    topics: listOfTexts,
    keyDecisions: listOfTexts,
    openQuestions: listOfTexts,
    model: or(text),
    atMs: or(count),
  },
  memory: {
    ...kind,
    place: one("file", "session"),
    path: or(text),
    firstLine: or(count),
    lastLine: or(count),
    agentId: or(text),
    key: or(text),
    sessionId: or(text),
    seq: or(count),
    id: or(text),
    role: or(text),
    firstSeq: or(count),
    lastSeq: or(count),
    tsMs: or(count),
    names: listOfTexts,
    snippet: text,
  },
  policy: {
    ...kind,
    key: text,
    sessionId: text,
    action: one("allow", "deny"),
    source: one("session", "rule", "default", "unset"),
    ruleIndex: or(count),
    rule: or(anything),
    mode: or(one("first-match", "deny-overrides")),
    dependsOnMode: flag,
    channel: or(text),
    chatType: or(text),
    groupActivation: or(one("mention", "always")),
    queue: object({
      behavior: one("followup", "collect", "steer", "steer-backlog", "interrupt"),
      debounceMs: count,
      cap: or(count),
      drop: one("old", "new", "summarize"),
    }),
    reset: object({
      isDue: flag,
      reason: or(one("daily", "idle")),
      dueAtMs: or(count),
      source: one("channel", "type", "general"),
      mode: one("never", "idle", "daily"),
      atHour: count,
      idleMinutes: or(count),
    }),
  },
  prune: {
    ...kind,
    state: one("planned", "done"),
    steps: listOf({
      agentId: text,
      action: one("archive", "purge"),
      key: text,
      sessionId: text,
      reason: one("age", "count", "bytes"),
      updatedAtMs: count,
      sizeBytes: or(count),
      state: one("planned", "done", "skipped"),
    }),
    spared: listOf({ key: text, sessionId: text, why: one("protected", "grace") }),
    sessionCount: count,
    sizeBytes: count,
    freedBytes: count,
    excessBytes: count,
  },
  removed: { ...kind, agentId: text, key: text, sessionId: text },
  redaction: {
    ...kind,
    key: text,
    sessionId: text,
    ids: list,
    seqs: list,
    reason: text,
    shared: or(listOf({ agentId: text, key: text, sessionId: text, archived: flag, seqs: list })),
  },
  entry: { ...kind, key: text, sessionId: text, revision: count, entry: anything },
  backup: { ...kind, path: text, sizeBytes: count },
  restored: { ...kind, path: text, backup: text, keptPath: or(text), sessions: count },
  reindex: { ...kind, store: text, lag: or(count), files: listOf({ path: text, sessions: count }) },
  stats: {
    ...kind,
    store: text,
    storeName: text,
    defaultDurability: one("none", "process", "disk"),
    agents: count,
    sessions: count,
    archivedSessions: count,
    records: count,
    messages: count,
    firstAtMs: or(count),
    lastAtMs: or(count),
    sizeBytes: or(count),
    searchLag: or(count),
  },
  diagnosis: {
    ...kind,
    overflow: flag,
    overflowKind: or(one("input", "io", "bytes", "item", "ceiling")),
    category: text,
    inputTokens: or(count),
    limitTokens: or(count),
    maxOutputTokens: or(count),
    retryAfterMs: or(count),
    rule: text,
    action: text,
  },
  turn: {
    ...kind,
    key: text,
    sessionId: text,
    turnId: text,
    outcome: one("done", "aborted", "step-limit", "denied"),
    stopReason: or(text),
    model: text,
    text,
    usage: or(anything),
    gauge: object({
      tokens: count,
      source: one("actual", "actual+delta", "tokenizer", "heuristic"),
      lowTokens: count,
      highTokens: count,
      windowTokens: or(count),
      percent: or(number),
    }),
    calls: count,
    tools: listOf({ name: text, isError: flag, sizeBytes: count }),
    events: listOf({ name: text, message: text, data: anything }),
  },
  call: {
    ...kind,
    callId: text,
    turnId: text,
    step: count,
    attempt: count,
    atMs: or(count),
    provider: text,
    model: text,
    fromSeq: count,
    toSeq: count,
    summaryId: or(text),
    messageCount: count,
    windowTokens: or(count),
    cut: or(object({ fromSeq: count, metAtSeq: count, requestSeq: or(count) })),
    changes: listOf({ recordId: or(text), what: text, reason: text, beforeBytes: count, afterBytes: count }),
    estimatedTokens: count,
    actual: or(anything),
    outcome: one("answered", "partial", "overflowed", "failed", "aborted"),
  },
  completion: { ...kind, shell: one("bash", "zsh", "fish"), script: text },
};

/** Every line of both streams is an object of a known shape; gives their kinds. */
export function kinds(output: string): string[] {
  return objects(output).map((value) => {
    const shape = shapes[String(value["kind"])];
    // Details of an error are whatever the error is about.
    const checked = value["kind"] === "error" ? { ...value, details: {} } : value;
    expect(
      shape === undefined ? "an unknown kind" : problemOf(checked, shape),
      JSON.stringify(value).slice(0, 300),
    ).toBeNull();
    return String(value["kind"]);
  });
}
