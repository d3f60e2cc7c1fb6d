import type { SessionRef, SessionState, SessionStore } from "@throughline/core";
import { givenName, isFields, sessionName, sessionProgram } from "@throughline/core/internal";
import { folderScope } from "@throughline/core/internal/node";
import { shownFolder, shownProgram } from "../session-names.ts";
import { terminalSafeLine } from "../terminal-safe.ts";

/** `folder`: the sessions of this folder and agent; `agent`: those of this agent; `all`: also archives and sub-agents. */
export type Scope = "folder" | "agent" | "all";

export const scopes: readonly Scope[] = ["folder", "agent", "all"];

/** The picker keeps this of a session. A store may hold a hundred thousand of them. */
export interface ListedSession {
  /** Differs between all sessions of the store. */
  readonly id: string;
  readonly ref: SessionRef;
  readonly sessionId: string;
  /** Is safe to print. Where `isNamed` is false it is the last part of the key, and the first words say more. */
  readonly name: string;
  readonly isNamed: boolean;
  /** Holds null for a session that began here. */
  readonly format: string | null;
  readonly program: string;
  readonly folder: string;
  readonly messageCount: number;
  readonly updatedAtMs: number;
  readonly isArchived: boolean;
  readonly isAnswering: boolean;
  /** Names the file that the session was imported from. */
  readonly sourcePath: string | null;
  /** The narrowest scope that has it. */
  readonly scope: Scope;
}

export interface ListedContext {
  readonly namespace: string;
  readonly agentId: string;
  /** Absolute, with links resolved. */
  readonly folder: string;
  readonly userHome: string;
}

/** More are not read: the last line says so. */
export const mostListed = 50_000;
const pageSize = 200;

/** Yields the sessions page by page, those that were used last first. */
export async function* readSessions(
  store: SessionStore,
  context: ListedContext,
  signal: AbortSignal,
): AsyncGenerator<readonly ListedSession[], void, void> {
  const listed = createLister(context);
  let cursor: string | null = null;
  let count = 0;
  do {
    const page = await store.list({
      namespace: context.namespace,
      state: "any",
      limit: pageSize,
      signal,
      ...(cursor === null ? {} : { cursor }),
    });
    yield page.sessions.map(listed);
    count += page.sessions.length;
    cursor = page.nextCursor;
  } while (cursor !== null && count < mostListed);
}

/** Returns what makes a session a row of the picker. */
export function createLister({ agentId, folder, userHome }: ListedContext): (state: SessionState) => ListedSession {
  const isHere = folderScope(folder);
  return (state) => {
    const { ref, entry, head } = state;
    const isOfAgent = ref.agentId === agentId && !state.archived && typeof entry.spawnedBy !== "string";
    const format = sessionProgram(entry);
    return {
      id: JSON.stringify([ref.agentId, ref.key, ref.archiveId ?? null]),
      ref,
      sessionId: state.sessionId,
      name: terminalSafeLine(sessionName(state)).trim(),
      isNamed: givenName(entry) !== null,
      format,
      program: terminalSafeLine(shownProgram(format)),
      folder: terminalSafeLine(shownFolder(entry.cwd, userHome)),
      messageCount: state.messageCount,
      updatedAtMs: state.updatedAtMs,
      isArchived: state.archived,
      isAnswering: head.turn !== null,
      sourcePath: pathOf(entry["importedFrom"]),
      scope: !isOfAgent ? "all" : isHere(entry.cwd) ? "folder" : "agent",
    };
  };
}

function pathOf(receipt: unknown): string | null {
  const path = isFields(receipt) ? receipt["path"] : null;
  return typeof path === "string" ? path : null;
}

export function isInScope(session: Pick<ListedSession, "scope">, scope: Scope): boolean {
  return scopes.indexOf(session.scope) <= scopes.indexOf(scope);
}
