import type { Clock, RandomSource, RecordIds, SessionEvent, StoreLimits } from "@throughline/core";
import type { DescriptorRoom } from "./descriptor-room.ts";
import type { Files } from "./files.ts";
import type { LockPort } from "./lock-file.ts";
import type { SessionLocks } from "./session-lock.ts";
import type { SessionRow } from "./session-row.ts";
import type { LineCodec } from "./stored-line.ts";

/** What every part of one store handle works with. */
export interface StoreContext {
  readonly root: string;
  readonly files: Files;
  readonly locks: SessionLocks;
  /** What they are made of. */
  readonly lockPort: LockPort;
  readonly room: DescriptorRoom;
  readonly codec: LineCodec;
  readonly clock: Clock;
  readonly ids: RecordIds;
  readonly random: RandomSource;
  /** How long what is derived may lag behind. */
  readonly derivedDelayMs: number;
  readonly limits: StoreLimits;
  /** Lines of other programs that are longer are kept and not read: the largest record, as it is or by default. */
  readonly maxLineBytes: number;
  readonly keepsIndex: boolean;
  /** The folder a new header names: pi and OpenClaw resume a session in it. */
  readonly workingDirectoryOf: (row: SessionRow) => string;
  /** Null: while there are not too many sessions. */
  readonly writesSessionsJson: boolean | null;
  emit(event: SessionEvent): void;
}
