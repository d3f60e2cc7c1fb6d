import { hasErrorCode, ThroughlineError } from "@throughline/core";
import type { Clock, RandomSource, RecordPage, SessionRef } from "@throughline/core";
import { assertRef, watchBounds } from "@throughline/store-kit/internal";
import { refused, sessionNotFound } from "@throughline/core/internal";
import type { ServerEvent } from "./client/read-events.ts";
import { readFailure, sessionRequest, type Connection } from "./connection.ts";
import { recordOf, type WireRecord } from "./wire.ts";

export interface WatchContext {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly begin: (signal?: AbortSignal) => void;
  /** Aborts when the handle is closed. */
  readonly closing: AbortSignal;
}

interface Gone {
  readonly code: string;
  /** States the id of the session that has the key now; null when no session has it. */
  readonly sessionId: string | null;
}

const longestWaitMs = 5000;
/** The server pings every 15 s, so a stream that is silent for longer than this is dead. */
const longestSilenceMs = 40_000;

/** Follows a session by its event stream. After a broken stream it reconnects behind the last delivered record. */
export async function* watchSession(
  context: WatchContext,
  ref: SessionRef,
  options: { readonly afterSeq: number; readonly signal: AbortSignal },
): AsyncGenerator<RecordPage> {
  const { afterSeq, signal } = watchBounds(options);
  assertRef(ref);
  const ending = AbortSignal.any([signal, context.closing]);
  let reached = afterSeq;
  let sessionId: string | null = null;
  let lastSeq = afterSeq;
  for (let failures = 0; !ending.aborted; failures++) {
    context.begin();
    try {
      for await (const { event, data } of eventsOf(context, ref, { sessionId, reached, ending })) {
        failures = 0;
        if (event === "hello" || event === "state") {
          const head = JSON.parse(data) as { readonly sessionId: string; readonly lastSeq: number };
          sessionId ??= head.sessionId;
          lastSeq = Math.max(lastSeq, head.lastSeq);
        } else if (event === "record") {
          const record = recordOf(JSON.parse(data) as WireRecord, "record");
          reached = record.seq;
          lastSeq = Math.max(lastSeq, reached);
          yield { records: [record], lastSeq };
        } else if (event === "gone") {
          const { code, sessionId: holder } = JSON.parse(data) as Gone;
          if (code === "CURSOR_INVALID")
            throw refused(code, `The session has no record ${reached} yet.`, { afterSeq: reached });
          if (code === "UNAUTHENTICATED") throw refused(code, "The token of the store is no longer valid.");
          if (holder === null) throw sessionNotFound(ref);
          // Another session has the key now, so the watched session cannot deliver anything more.
          await context.clock.sleep(2 ** 31 - 1, ending);
        }
      }
    } catch (thrown) {
      if (ending.aborted) break;
      const failure = ThroughlineError.isInstance(thrown)
        ? { error: thrown, isRepeatable: false }
        : readFailure(thrown, context.connection.client.url);
      if (!failure.isRepeatable) throw failure.error;
    }
    const waitMs =
      Math.min(longestWaitMs, 50 * 2 ** Math.min(failures, 10)) * (0.5 + context.random.uint32() / 2 ** 33);
    await context.clock.sleep(waitMs, ending).catch((error: unknown) => {
      if (!hasErrorCode(error, "ABORTED")) throw error;
    });
  }
  if (!signal.aborted) context.begin();
}

async function* eventsOf(
  { connection, clock }: WatchContext,
  ref: SessionRef,
  at: { readonly sessionId: string | null; readonly reached: number; readonly ending: AbortSignal },
): AsyncGenerator<ServerEvent, void, void> {
  const silence = new AbortController();
  const signal = AbortSignal.any([at.ending, silence.signal]);
  const query = { after: at.reached, session: at.sessionId ?? undefined };
  const events = connection.client.events({ ...sessionRequest(ref, "/events", { query }), signal });
  try {
    for (;;) {
      const heard = new AbortController();
      void clock.sleep(longestSilenceMs, heard.signal).then(
        () => silence.abort(),
        () => undefined,
      );
      const next = await events.next().finally(() => heard.abort());
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    silence.abort();
  }
}
