import type { Clock, RandomSource, RecordIds, SessionEvent } from "@throughline/core";
import type { StoreLimits } from "@throughline/core/internal";
import type { DescriptorRoom } from "./descriptor-room.ts";
import type { Files } from "./files.ts";
import type { LockPort } from "./lock-file.ts";
import type { SessionLocks } from "./session-lock.ts";
import type { SessionRow } from "./session-row.ts";
import type { LineCodec } from "./stored-line.ts";

export interface StoreContext {
  readonly root: string;
  readonly files: Files;
  readonly locks: SessionLocks;
  readonly lockPort: LockPort;
  readonly room: DescriptorRoom;
  readonly codec: LineCodec;
  readonly clock: Clock;
  readonly ids: RecordIds;
  readonly random: RandomSource;
  /** Limits how far derived files may lag, in milliseconds. */
  readonly derivedDelayMs: number;
  readonly limits: StoreLimits;
  /**
   * Limits the lines of other programs, in bytes: longer ones are kept but not read. It is the largest record size, at
   * least the default.
   */
  readonly maxLineBytes: number;
  readonly keepsIndex: boolean;
  /** Returns the folder that a new header states, because pi and OpenClaw resume a session there. */
  readonly workingDirectoryOf: (row: SessionRow) => string;
  /** Null means that the file is written while there are not too many sessions. */
  readonly writesSessionsJson: boolean | null;
  emit(event: SessionEvent): void;
}
