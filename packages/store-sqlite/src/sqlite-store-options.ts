import type * as core from "@throughline/core";
import type { BackupPolicy } from "./backup-keeper.ts";
import type { SearchFill } from "./index-filler.ts";
import type { SqliteDriver } from "./sqlite-driver.ts";

/** Options of `createSqliteStore`. */
export interface SqliteStoreOptions {
  /** The database file. Its folder is made when it is missing. */
  readonly path: string;
  /** False: a file that does not exist is STORE_NOT_FOUND. @default true */
  readonly create?: boolean;
  /** Around payloads and entries. Its name is kept in the store: another codec is refused. @default none */
  readonly codec?: core.PayloadCodec;
  /** @default the system's clock */
  readonly clock?: core.Clock;
  /** @default ids of this process */
  readonly ids?: core.RecordIds;
  /** @default the system's randomness */
  readonly random?: core.RandomSource;
  readonly onEvent?: core.SessionEventListener;
  /** What a write gets that does not ask. @default "disk" */
  readonly defaultDurability?: core.Durability;
  /** How long an operation waits for other processes, in milliseconds. @default 10,000 */
  readonly lockTimeoutMs?: number;
  /** @default core's `defaultStoreLimits` */
  readonly limits?: Partial<core.StoreLimits>;
  /**
   * Whether a file that can no longer be read makes room for the newest backup beside it (`<name>.….backup`); it is kept,
   * and a finding says so. Without a backup nothing is touched. @default true
   */
  readonly recover?: boolean;
  /** Copies of the store made beside it by whoever writes to it, and checked. @default none but before a migration */
  readonly backups?: BackupPolicy;
  /** When the indexes of words and of children are filled: behind the turns, or only when somebody searches. @default "background" */
  readonly searchFill?: SearchFill;
  /** Opens the database; another build of better-sqlite3, or one that fails on purpose. @default better-sqlite3 */
  readonly driver?: SqliteDriver;
}
