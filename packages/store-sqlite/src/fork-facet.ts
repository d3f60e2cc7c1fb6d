import type { ForkFacet, SessionRef, SessionState, SharedRecords } from "@throughline/core";
import { forkBound } from "@throughline/core/store";
import type { Connection } from "./open-connection.ts";
import { foundSession, refOf } from "./session-rows.ts";
import { spansOf } from "./session-spans.ts";
import { countSlice, forkSession, type CountedMessages } from "./fork-session.ts";
import { purgedNamespace, type SessionRow, type Statements } from "./statements.ts";
import type { StoreHandle } from "./store-handle.ts";

interface ForkOptions {
  readonly atSeq?: number;
  readonly sessionId: string;
}

/** Forks share the records of their origin: nothing is copied, whatever the session holds. */
export function createFork(handle: StoreHandle): ForkFacet {
  return {
    fork: (ref, target, options) => fork(handle, ref, target, options),
    sharers: (ref, seqs) => handle.read(({ statements }) => sharersOf(statements, foundSession(statements, ref), seqs)),
  };
}

async function fork(
  handle: StoreHandle,
  ref: SessionRef,
  target: SessionRef,
  options: ForkOptions,
): Promise<SessionState> {
  const atSeq = forkBound(ref, target, options);
  const { sessionId } = options;
  for (;;) {
    // How many messages a fork begins with has to be counted where it does not end with its origin.
    const counted = await countedMessages(handle, ref, atSeq);
    const state = await handle.write(
      (context) => {
        const origin = foundSession(context.connection.statements, ref);
        const messages = messagesUpTo(context.connection, origin, atSeq, counted);
        if (messages === null) return null;
        return forkSession(context, ref, { ref: target, sessionId, atSeq: Math.min(atSeq, origin.last_seq) }, messages);
      },
      { durability: "disk" },
    );
    if (state !== null) return state;
  }
}

/** Who shows the rows of these records beside the session. An origin that was purged shows nothing any more. */
function sharersOf(statements: Statements, session: SessionRow, seqs: readonly number[]): readonly SharedRecords[] {
  const found = new Map<number, { readonly ref: SessionRef; readonly sessionId: string; readonly seqs: number[] }>();
  const spans = spansOf(statements, session);
  for (const seq of seqs) {
    const owner = spans.find(({ afterSeq, toSeq }) => seq > afterSeq && seq <= toSeq)?.owner;
    if (owner === undefined || seq > session.last_seq) continue;
    for (const row of statements.sharersOf.all(owner.session, seq)) {
      if (row.session === session.session || row.namespace === purgedNamespace) continue;
      const known = found.get(row.session) ?? { ref: refOf(row), sessionId: row.session_id, seqs: [] };
      found.set(row.session, known);
      known.seqs.push(seq);
    }
  }
  return [...found.values()];
}

interface Counted {
  readonly origin: SessionRow;
  readonly found: CountedMessages;
}

/** Counts slice by slice, so that nobody waits for a long session. */
async function countedMessages(handle: StoreHandle, ref: SessionRef, atSeq: number): Promise<Counted> {
  const origin = await handle.read(({ statements }) => foundSession(statements, ref));
  const { last_seq: lastSeq, message_count: messages } = origin;
  const toSeq = Math.min(atSeq, lastSeq);
  let found: CountedMessages = toSeq > lastSeq / 2 ? { atSeq: lastSeq, messages } : { atSeq: 0, messages: 0 };
  while (found.atSeq !== toSeq) {
    const before = found;
    found = await handle.read(({ statements }) => countSlice(statements, origin, toSeq, before));
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { origin, found };
}

/** Null when a redaction came in between, or the session is another one: the count is then to be made again. */
function messagesUpTo(
  { statements }: Connection,
  origin: SessionRow,
  atSeq: number,
  { origin: before, found }: Counted,
): number | null {
  if (origin.session !== before.session) return null;
  if (atSeq >= origin.last_seq) return origin.message_count;
  const since = statements.countMessages.get(origin.session, before.last_seq, origin.last_seq) ?? 0;
  if (origin.message_count - since !== before.message_count) return null;
  // What was appended meanwhile may have moved the end of the fork.
  return Math.min(atSeq, origin.last_seq) === found.atSeq ? found.messages : null;
}
