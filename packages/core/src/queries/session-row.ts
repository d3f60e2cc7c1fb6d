import type { SessionEntry } from "../session-entry.ts";
import { readSpend, type Spend } from "../session-spend.ts";
import type { SessionState } from "../session-state.ts";
import { countWaitingCalls } from "../waiting-calls.ts";

/** Describes a session in the form that `--json` prints. */
export interface SessionRow {
  readonly kind: "session";
  /** Names the agent that the session belongs to. */
  readonly agentId: string;
  /** States the session's key, such as `agent:main:main`. `sessionRef({ key })` is its address in the default namespace. */
  readonly key: string;
  /** States the id of the session, which an archive keeps. */
  readonly sessionId: string;
  /** States the name that a person or another program gave the session, or null without such a name. */
  readonly label: string | null;
  /** States the name that was derived from the conversation, or null without a title. */
  readonly title: string | null;
  /**
   * States what created the title: `rules`, `model`, or `import` for a title that the source states. Null without a
   * title.
   */
  readonly titleBy: string | null;
  /** States the name that lists show: the label, else the title, else the last part of the key. */
  readonly name: string;
  /**
   * States the format of the program that the session was imported from, such as `claude-code`, or the program that
   * spoke through the gateway. Null for a native session.
   */
  readonly program: string | null;
  /** States the absolute path of the session's working folder, or null when the path is unknown. */
  readonly cwd: string | null;
  /** States the id of the session that this session was forked from, or null. */
  readonly forkedFrom: string | null;
  /** States the key of the session that spawned this session, or null. */
  readonly spawnedBy: string | null;
  /** States whether the session is in use or archived. */
  readonly state: "active" | "archived";
  /** States the id of the archive, or null for an active session. */
  readonly archiveId: string | null;
  /** Counts the records of the session, including records of other branches. */
  readonly recordCount: number;
  /** Counts the messages of the session. */
  readonly messageCount: number;
  /** Counts the tokens of the last request, as the provider reported them. Null without a fresh count. */
  readonly contextTokens: number | null;
  /** States the size of the model's context window in tokens, or null when the size is unknown. */
  readonly windowTokens: number | null;
  /** States how full the window is, in percent with one decimal. Null when either count is unknown. */
  readonly contextPercent: number | null;
  /** Names the last model as `provider/model`, or the model alone. Null when the entry names no model. */
  readonly model: string | null;
  /** States when the session was created, in UTC milliseconds. */
  readonly createdAtMs: number;
  /** States when the session was last active, in UTC milliseconds. */
  readonly updatedAtMs: number;
  /**
   * Names the operation that has not finished, which leaves the session with only part of its records. Null for a
   * complete session.
   */
  readonly incomplete: "copy" | "fork" | "import" | null;
  /** Counts the tool calls that wait for a decision whose deadline is not over. A session with such calls waits for an answer of its user. */
  readonly pendingApprovals: number;
  /**
   * Adds up the calls that turns of the session made: tokens by class and their cost. Null without such calls. Calls of
   * other programs are not counted.
   */
  readonly spend: Spend | null;
}

/** Returns a session in the form that lists and JSON output show. */
export function sessionRow(state: SessionState): SessionRow {
  const { entry, ref, head } = state;
  const windowTokens = countOrNull(entry.contextTokens);
  // Older writers stored the sum of all calls here, and lists showed 228 %. Only a count marked as fresh is trusted.
  const contextTokens = entry.totalTokensFresh === true ? countOrNull(entry.totalTokens) : null;
  return {
    kind: "session",
    agentId: ref.agentId,
    key: ref.key,
    sessionId: state.sessionId,
    label: sessionLabel(entry),
    title: textOrNull(entry.title),
    titleBy: textOrNull(entry.title) === null ? null : textOrNull(entry.titleBy),
    name: sessionName(state),
    program: sessionProgram(entry),
    cwd: textOrNull(entry.cwd),
    forkedFrom: memberText(entry["forkedFrom"], "sessionId"),
    spawnedBy: textOrNull(entry.spawnedBy),
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
    pendingApprovals: state.archived || head.turn !== null ? 0 : countWaitingCalls(state),
    spend: readSpend(entry),
  };
}

function incompleteBy(entry: SessionEntry): SessionRow["incomplete"] {
  if (entry["copyIncomplete"] === true) return "copy";
  if (entry["forkIncomplete"] === true) return "fork";
  const receipt = entry["importedFrom"] as { readonly isPartial?: unknown } | null | undefined;
  return receipt?.isPartial === true ? "import" : null;
}

export function sessionName({ entry, ref }: Pick<SessionState, "entry" | "ref">): string {
  return givenName(entry) ?? (ref.key.slice(ref.key.lastIndexOf(":") + 1) || ref.key);
}

/** Returns null for a session whose only name is its key. */
export function givenName(entry: SessionEntry): string | null {
  return textOrNull(entry.label) ?? textOrNull(entry.title) ?? textOrNull(entry.displayName);
}

export function sessionProgram(entry: SessionEntry): string | null {
  return memberText(entry["importedFrom"], "format") ?? textOrNull(entry["client"]);
}

export function sessionLabel(entry: SessionEntry): string | null {
  return textOrNull(entry.label) ?? textOrNull(entry.displayName);
}

export function modelName(provider: string | null, model: string | null): string | null {
  return provider !== null && model !== null ? `${provider}/${model}` : model;
}

export function percentOf(tokens: number | null, windowTokens: number | null): number | null {
  if (tokens === null || windowTokens === null || windowTokens <= 0) return null;
  return Math.round((tokens / windowTokens) * 1000) / 10;
}

function countOrNull(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : null;
}

export function memberText(value: unknown, member: string): string | null {
  return typeof value === "object" && value !== null ? textOrNull((value as Record<string, unknown>)[member]) : null;
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
