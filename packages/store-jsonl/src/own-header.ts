import { crc32 } from "node:zlib";
import type { AgentFolder } from "./agent-folder.ts";
import { appendAll, withFileErrors } from "./file-work.ts";
import type { FlushedNames } from "./flushed-names.ts";
import { type ForkSource, sealLine, type StoreEnvelope } from "./store-envelope.ts";
import type { SessionRow } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";

export interface ForkHeader {
  readonly forkedFrom: ForkSource;
  readonly origins: readonly (readonly [sessionId: string, seq: number])[];
  /** Names the origin's transcript, in the field that pi and OpenClaw read. */
  readonly parentSession: string;
}

/** Builds the header line of a new session. The header is not a record, so it has seq 0. */
export function ownHeaderLine(
  { sessionId, key, createdAtMs }: Pick<SessionRow, "sessionId" | "key" | "createdAtMs">,
  cwd: string,
  fork: ForkHeader | null = null,
): string {
  const timestamp = new Date(createdAtMs).toISOString();
  const header = { type: "session", version: 3, id: sessionId, timestamp, cwd, key };
  const { parentSession, ...origin } = fork ?? {};
  const text = JSON.stringify({ ...header, parentSession });
  const envelope: StoreEnvelope = { seq: 0, ...origin, crc: crc32(text) };
  return sealLine(text, envelope);
}

export function writeNewFile(
  { files, workingDirectoryOf }: Pick<StoreContext, "files" | "workingDirectoryOf">,
  { folder, names }: { readonly folder: AgentFolder; readonly names: FlushedNames },
  row: SessionRow,
): void {
  const path = folder.session(row.fileName);
  const header = ownHeaderLine(row, workingDirectoryOf(row));
  withFileErrors(path, () => {
    const handle = files.open(path, "create");
    let identity: string;
    try {
      appendAll(files, handle, Buffer.from(`${header}\n`), 0, path);
      files.flushNow(handle);
      ({ identity } = files.factsOf(handle));
    } catch (error) {
      files.remove(path);
      throw error;
    } finally {
      files.close(handle);
    }
    names.flush(path, identity);
  });
}
