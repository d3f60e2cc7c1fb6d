import { setImmediate as pause } from "node:timers/promises";
import type * as core from "@throughline/core";
import { type ReadPayload, sessionNotFound, type StoreLimits } from "@throughline/core/internal";
import * as kit from "@throughline/store-kit/internal";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import type { DescriptorRoom } from "./descriptor-room.ts";
import { holdPage, type HeldPage, type PageCursor } from "./read-pages.ts";
import type { SessionRow } from "./session-row.ts";

interface ReadParts {
  readonly life: kit.HandleLife;
  readonly room: DescriptorRoom;
  readonly limits: StoreLimits;
  /** @throws {ThroughlineError} INPUT_INVALID for an address that is none */
  readonly agent: () => AgentSessionFiles;
  /** Finds the session and prepares its transcript. */
  readonly lookUp: (signal?: AbortSignal) => Promise<SessionRow | null>;
}

/** Reads a session page by page. Each page is read when it is asked for. */
export async function* readSession<Payload extends ReadPayload = "record">(
  { life, room, limits, agent: agentOf, lookUp }: ReadParts,
  ref: core.SessionRef,
  options: core.ReadOptions<Payload> = {},
): AsyncGenerator<core.RecordPage<Payload>> {
  const { afterSeq, beforeSeq, limit } = kit.readBounds(options);
  life.begin(options.signal);
  const { order = "ascending", payload = "record" as Payload } = options;
  const { pageRecords, pageBytes } = limits;
  const step = order === "ascending" ? 1 : -1;
  const agent = agentOf();
  let seq = 0;
  let sessionId: string | null = null;
  let cursor: PageCursor | null = null;
  // The session is read once even with a limit of 0, so that a missing session is reported.
  for (let left = limit; left > 0 || sessionId === null; life.begin(options.signal)) {
    // The session is looked up for each page, because it may be moved, redacted or purged while the caller works.
    const row: SessionRow | null = sessionId === null ? await lookUp(options.signal) : agent.locateId(sessionId);
    if (row === null) throw sessionNotFound(ref);
    ({ sessionId } = row);
    const bounds = { order, afterSeq, beforeSeq, left, step, pageRecords, pageBytes } as const;
    const read = (): HeldPage<Payload> | null => holdPage(agent, row, seq, bounds, payload, cursor);
    const held = await room.patiently(read, () => 0);
    // Purged since it was looked up: that is not where it ends.
    if (held === null && agent.locateId(sessionId) === null) throw sessionNotFound(ref);
    if (held === null || held.page === null) return;
    const { records, span, lastSeq } = held.page;
    ({ cursor } = held.page);
    seq = step === 1 ? span.toSeq + 1 : span.fromSeq - 1;
    left -= records.length;
    // Pages are read synchronously, so a long read without pauses would block the process.
    await pause();
    yield { records, lastSeq };
    if (seq < 1) return;
  }
}
