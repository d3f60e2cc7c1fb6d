import type { RowCoder } from "@throughline/store-kit/internal";
import type { Clock, RandomSource, RecordIds, SessionEvent } from "@throughline/core";
import type { StoreLimits } from "@throughline/core/internal";
import type { Connection } from "./connection.ts";
import type { PartialRows } from "./partial-rows.ts";
import type { SearchIndex } from "./search-index.ts";
import type { Session } from "./rows.ts";

/** Holds what all parts of one store handle share. */
export interface StoreContext {
  readonly path: string;
  readonly rows: RowCoder;
  /** States whether a codec encodes every payload. */
  readonly isCoded: boolean;
  readonly search: SearchIndex;
  readonly partials: PartialRows;
  readonly clock: Clock;
  readonly ids: RecordIds;
  readonly random: RandomSource;
  readonly limits: StoreLimits;
  /** Limits how long an operation waits for other processes, in milliseconds. */
  readonly lockTimeoutMs: number;
}

/** Holds a write inside its transaction. Its announcements are made once the transaction is committed. */
export interface WriteContext extends StoreContext {
  readonly connection: Connection;
  announce(...events: readonly SessionEvent[]): void;
  /** Notes that a session has more records, so that its followers hear of them after the commit. */
  grew(session: Session): void;
}
