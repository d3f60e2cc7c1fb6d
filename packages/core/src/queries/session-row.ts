import type { SessionEntry } from "../session-entry.ts";
import type { SessionState } from "../session-state.ts";

/** A session as `--json` shows it. */
export interface SessionRow {
  readonly kind: "session";
  /** The agent that the session belongs to. */
  readonly agentId: string;
  /** The session's key, such as `agent:main:main`. */
  readonly key: string;
  /** The id of the session, which an archive keeps. */
  readonly sessionId: string;
  /** The name that a person or another program's lists gave the session; null when it was never named. */
  readonly label: string | null;
  /** The name made from the conversation; null when there is none. */
  readonly title: string | null;
  /** The maker of the title: `rules`, `model`, or `import` for one that the source states. Null without a title. */
  readonly titleBy: string | null;
  /** The name that lists show: the label, else the title, else the last part of the key. */
  readonly name: string;
  /** The format of the program that the session was imported from, such as `claude-code`; null for an own session. */
  readonly program: string | null;
  /** The folder that the session works in, absolute; null when it is not known. */
  readonly cwd: string | null;
  /** The id of the session that this one is a fork of; null for any other session. */
  readonly forkedFrom: string | null;
  /** The key of the session that spawned this one; null when none did. */
  readonly spawnedBy: string | null;
  /** Whether the session is in use or archived. */
  readonly state: "active" | "archived";
  /** The id of the archive; null for an active session. */
  readonly archiveId: string | null;
  /** How many records the session holds, those of other branches too. */
  readonly recordCount: number;
  /** How many messages the session holds. */
  readonly messageCount: number;
  /** Tokens of the last request as the provider counted them; null when no fresh count is known. */
  readonly contextTokens: number | null;
  /** The size of the model's context window in tokens; null when it is unknown. */
  readonly windowTokens: number | null;
  /** How full the window is, in percent with one decimal; null when either count is unknown. */
  readonly contextPercent: number | null;
  /** The last model as `provider/model`, or the model alone; null when the entry names none. */
  readonly model: string | null;
  /** When the session was created, UTC milliseconds. */
  readonly createdAtMs: number;
  /** When the session was last active, UTC milliseconds. */
  readonly updatedAtMs: number;
  /** What has not come to its end: only part of the session is there. Null: all of it. */
  readonly incomplete: "copy" | "fork" | "import" | null;
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
  };
}

function incompleteBy(entry: SessionEntry): SessionRow["incomplete"] {
  if (entry["copyIncomplete"] === true) return "copy";
  if (entry["forkIncomplete"] === true) return "fork";
  const receipt = entry["importedFrom"] as { readonly isPartial?: unknown } | null | undefined;
  return receipt?.isPartial === true ? "import" : null;
}

/** The name that a list shows for a session: its label, else its title, else the last part of its key. */
export function sessionName({ entry, ref }: Pick<SessionState, "entry" | "ref">): string {
  return givenName(entry) ?? (ref.key.slice(ref.key.lastIndexOf(":") + 1) || ref.key);
}

/** The label or title of a session; null when it has neither, and its key is its only name. */
export function givenName(entry: SessionEntry): string | null {
  return textOrNull(entry.label) ?? textOrNull(entry.title) ?? textOrNull(entry.displayName);
}

/** The format that a session was imported from, such as `claude-code`; null for an own session. */
export function sessionProgram(entry: SessionEntry): string | null {
  return memberText(entry["importedFrom"], "format");
}

/** The name that a person or another program's lists gave the session; null when it was never named. */
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

function memberText(value: unknown, member: string): string | null {
  return typeof value === "object" && value !== null ? textOrNull((value as Record<string, unknown>)[member]) : null;
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
