import type { SessionEntry, SessionState } from "@throughline/core";

/** A session as `--json` shows it. */
export interface SessionRow {
  readonly kind: "session";
  readonly agentId: string;
  readonly key: string;
  readonly sessionId: string;
  readonly label: string | null;
  readonly state: "active" | "archived";
  readonly archiveId: string | null;
  readonly recordCount: number;
  readonly messageCount: number;
  readonly contextTokens: number | null;
  readonly windowTokens: number | null;
  readonly contextPercent: number | null;
  readonly model: string | null;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** What has not come to its end: only part of the session is there. Null: all of it. */
  readonly incomplete: "copy" | "fork" | "import" | null;
  readonly [field: string]: unknown;
}

/** A session as lists and JSON output show it. */
export function sessionRow(state: SessionState): SessionRow {
  const { entry, ref, head } = state;
  const windowTokens = countOrNull(entry.contextTokens);
  // Older writers summed the tokens of all calls here and showed 228 %; only a count that is called fresh is believed.
  const contextTokens = entry.totalTokensFresh === true ? countOrNull(entry.totalTokens) : null;
  return {
    kind: "session",
    agentId: ref.agentId,
    key: ref.key,
    sessionId: state.sessionId,
    label: sessionLabel(entry),
    state: state.archived ? "archived" : "active",
    archiveId: ref.archiveId ?? null,
    recordCount: head.lastSeq,
    messageCount: state.messageCount,
    contextTokens,
    windowTokens,
    contextPercent: percentOf(contextTokens, windowTokens),
    model: modelName(textOrNull(entry.modelProvider), textOrNull(entry.model)),
    createdAtMs: state.createdAtMs,
    updatedAtMs: state.updatedAtMs,
    incomplete: incompleteBy(entry),
  };
}

function incompleteBy(entry: SessionEntry): SessionRow["incomplete"] {
  if (entry["copyIncomplete"] === true) return "copy";
  if (entry["forkIncomplete"] === true) return "fork";
  const receipt = entry["importedFrom"] as { readonly isPartial?: unknown } | null | undefined;
  return receipt?.isPartial === true ? "import" : null;
}

/** What people call the session; null when nobody named it. */
export function sessionLabel(entry: SessionEntry): string | null {
  return textOrNull(entry.label) ?? textOrNull(entry.displayName);
}

/** `provider/model`, or what is known of it. */
export function modelName(provider: string | null, model: string | null): string | null {
  return provider !== null && model !== null ? `${provider}/${model}` : model;
}

/** Of the window, with one decimal; null when either is unknown. */
export function percentOf(tokens: number | null, windowTokens: number | null): number | null {
  if (tokens === null || windowTokens === null || windowTokens <= 0) return null;
  return Math.round((tokens / windowTokens) * 1000) / 10;
}

function countOrNull(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : null;
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
