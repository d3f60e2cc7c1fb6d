import { attachEnvelope } from "@throughline/openclaw-format";
import type { SessionRow } from "./session-row.ts";
import type { ForkSource, StoreEnvelope } from "./store-envelope.ts";

/** What the header of a fork says beside. */
export interface ForkHeader {
  readonly forkedFrom: ForkSource;
  readonly origins: readonly (readonly [sessionId: string, seq: number])[];
  /** The origin's transcript, where pi and OpenClaw look for it. */
  readonly parentSession: string;
}

/** The header line of a session of ours: no record, seq 0. */
export function ownHeaderLine(
  { sessionId, key, createdAtMs }: Pick<SessionRow, "sessionId" | "key" | "createdAtMs">,
  cwd: string,
  fork: ForkHeader | null = null,
): string {
  const timestamp = new Date(createdAtMs).toISOString();
  const header = { type: "session", version: 3, id: sessionId, timestamp, cwd, key };
  if (fork === null) return attachEnvelope(JSON.stringify(header), { seq: 0 });
  const { forkedFrom, origins, parentSession } = fork;
  const envelope: StoreEnvelope = { seq: 0, forkedFrom, origins };
  return attachEnvelope(JSON.stringify({ ...header, parentSession }), envelope);
}
