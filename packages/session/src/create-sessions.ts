import { sessionsTable } from "./option-tables.ts";
import { assertKnownOptions } from "@throughline/core/internal";
import { OpenSessions } from "./open-sessions.ts";
import { SessionHandle } from "./session-handle.ts";
import { ThroughlineError } from "@throughline/core";
import type { SessionsOptions } from "./session-options.ts";
import type { Sessions } from "./sessions.ts";

/**
 * Creates sessions over a store. Every turn is stored before a model sees it, so it survives a crash of the process.
 *
 * @throws {ThroughlineError} INPUT_INVALID for an option that is unknown, of another type or out of range, and for an
 * unknown time zone; CAPABILITY_UNSUPPORTED for a model with an unknown API
 * @example
 * ```ts
 * import { offline } from "@throughline/models/offline";
 * import { createSessions } from "@throughline/session";
 * import { createSqliteStore } from "@throughline/store-sqlite";
 *
 * const store = createSqliteStore({ path: "sessions.db" });
 * const sessions = createSessions({ store, model: offline() });
 * const session = await sessions.open("home");
 * const turn = await session.runTurn("Hello");
 * console.log(turn.text);
 *
 * await sessions.close();
 * await store.close();
 * ```
 */
export function createSessions(options: SessionsOptions): Sessions {
  assertKnownOptions<SessionsOptions>("createSessions", options, sessionsTable);
  if (options.titles === "model") {
    const message = `createSessions(): \`titles\` is "model", and no summarizer is given.`;
    const remedy = 'Use `createAgentSessions({ summarizers, titles: "model" })` of "@throughline/session/whole-turn".';
    throw new ThroughlineError("INPUT_INVALID", message, { outcome: "not-applied", remedy });
  }
  return new OpenSessions(options, (parts, log) => new SessionHandle(parts, log));
}
