import { openSession, parseSessionKey, sessionRef, type SessionRef, ThroughlineError } from "@throughline/core";
import { systemClock, systemRandom } from "@throughline/core/node";
import { createTokenEstimator } from "@throughline/tokens";
import { abandonedTurns } from "./abandoned-turns.ts";
import { processOwners } from "./process-owners.ts";
import type { Session, Sessions } from "./session.ts";
import { SessionHandle } from "./session-handle.ts";
import { historyTarget } from "./session-log.ts";
import type { SessionsOptions } from "./session-options.ts";
import { SharedParts } from "./shared-parts.ts";

/**
 * Sessions over a store: every turn is kept before a model sees it, and survives whatever happens to the process.
 * @throws {ThroughlineError} CAPABILITY_UNSUPPORTED for a model whose API no messages can be made for, INPUT_INVALID for a
 *   time zone that does not exist
 */
export function createSessions(options: SessionsOptions): Sessions {
  historyTarget(options.model.chat.api);
  return new OpenSessions(options);
}

function knownTimeZone(timeZone: string | undefined): string {
  try {
    return new Intl.DateTimeFormat("en-US", { timeZone }).resolvedOptions().timeZone;
  } catch {
    const message = `There is no time zone ${JSON.stringify(timeZone)}.`;
    throw new ThroughlineError("INPUT_INVALID", message, { details: { timeZone } });
  }
}

class OpenSessions implements Sessions {
  readonly #options: SessionsOptions;
  readonly #shared: SharedParts;
  readonly #open = new Set<SessionHandle>();
  #isClosed = false;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#shared = new SharedParts({
      clock: options.clock ?? systemClock,
      random: options.random ?? systemRandom,
      estimator: options.estimator ?? createTokenEstimator(),
      owners: options.owners ?? processOwners(),
      timeZone: knownTimeZone(options.timeZone),
      abandoned: abandonedTurns(options.store),
    });
  }

  async open(address: string | SessionRef, { signal }: { readonly signal?: AbortSignal } = {}): Promise<Session> {
    this.#assertOpen();
    const ref = typeof address === "string" ? this.#refOf(address) : sessionRef(address);
    if (ref.archiveId !== undefined)
      throw new ThroughlineError("SESSION_ARCHIVED", "An archived session takes no turns.", { details: { ...ref } });
    const { store } = this.#options;
    await openSession(store, ref, { random: this.#shared.random });
    const parts = {
      options: this.#options,
      shared: this.#shared,
      onClose: (handle: SessionHandle) => void this.#open.delete(handle),
    };
    const handle = await SessionHandle.open(ref, parts, signal);
    this.#open.add(handle);
    // Closed while the session was read: nobody would close this one.
    if (this.#isClosed) await handle.close();
    this.#assertOpen();
    return handle;
  }

  #assertOpen(): void {
    if (this.#isClosed)
      throw new ThroughlineError("SESSION_CLOSED", "These sessions were closed.", { outcome: "not-applied" });
  }

  #refOf(key: string): SessionRef {
    const { agentId, namespace } = this.#options;
    const named = parseSessionKey(key).agentId;
    return sessionRef({
      key,
      ...(agentId === undefined || named !== null ? {} : { agentId }),
      ...(namespace === undefined ? {} : { namespace }),
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#open].map((handle) => handle.close()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
