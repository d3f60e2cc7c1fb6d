import type { RowCoder } from "@throughline/store-kit/internal";
import type { Clock, RandomSource, RecordIds, SessionEvent } from "@throughline/core";
import type { StoreLimits } from "@throughline/core/internal";
import type { Connection } from "./connection.ts";
import type { PartialRows } from "./partial-rows.ts";
import type { SearchIndex } from "./search-index.ts";
import type { Session } from "./rows.ts";

/** What every part of one store handle works with. */
export interface StoreContext {
  readonly path: string;
  readonly rows: RowCoder;
  /** True when a codec stands around every payload. */
  readonly isCoded: boolean;
  /** Null under a codec: what is coded is not searched. */
  readonly search: SearchIndex | null;
  readonly partials: PartialRows;
  readonly clock: Clock;
  readonly ids: RecordIds;
  readonly random: RandomSource;
  readonly limits: StoreLimits;
  /** How long an operation waits for other processes. */
  readonly lockTimeoutMs: number;
}

/** A write inside its transaction. What it announces is announced once it is committed. */
export interface WriteContext extends StoreContext {
  readonly connection: Connection;
  announce(...events: readonly SessionEvent[]): void;
  /** Notes that a session has more records: once it is committed, whoever follows it hears of it. */
  grew(session: Session): void;
}
