import {
  assertKnownOptions,
  isColumnText,
  optionKinds,
  type OptionTable,
  quote,
  refused,
} from "@throughline/core/internal";
import { flushed } from "./statement-settings.ts";
import type { JobLease, StoreContext } from "./store-context.ts";

/** Who holds a lease, and for how long. */
interface LeaseOptions {
  /** Who takes the lease; unique among all that may. */
  readonly owner: string;
  /** From 1 on, by the database's clock. */
  readonly leaseMs: number;
}

/** The kinds of the options of `acquire`. */
export const leaseTable: OptionTable<LeaseOptions> = {
  owner: optionKinds.required(optionKinds.text),
  leaseMs: optionKinds.required(optionKinds.integer({ min: 1 })),
};

/**
 * Jobs that one node does at a time: summaries, checkpoints, the search index. A lease runs on the database's clock.
 * When its holder dies, the lease expires and the next one takes over with a greater fence. Appends of the old holder
 * with its lease are then refused in the statement. Nothing is locked while a job runs.
 */
export interface JobLeases {
  /**
   * The lease, or null while another owner's runs. An owner that holds it already gets the next fence.
   * @throws {ThroughlineError} INPUT_INVALID
   */
  acquire(name: string, options: LeaseOptions): Promise<JobLease | null>;
  /**
   * Prolongs the lease by `leaseMs` from now.
   *
   * @throws {ThroughlineError} LEASE_LOST once another holds it, or it was released
   */
  renew(lease: JobLease, leaseMs: number): Promise<JobLease>;
  /** Ends the lease, unless another holds it by now; the fence stays used. */
  release(lease: JobLease): Promise<void>;
}

/**
 * Every change of a lease waits for the disk: a fence that was given out must not be given out again after a power cut of
 * the server. `begin` says whether the store can still be used, and readies it.
 */
export function createJobLeases(context: StoreContext, begin: () => Promise<void>): JobLeases {
  const table = `${context.schema}.leases`;
  const now = `${context.schema}.store_now_ms()`;
  const rowNow = (row: string): string => `${context.schema}.row_now_ms(${row}.fence)`;
  return {
    async acquire(name, options) {
      assertKnownOptions<LeaseOptions>("acquire", options, leaseTable);
      const { owner, leaseMs } = options;
      assertText(name, "The name of a lease");
      assertText(owner, "The owner of a lease");
      await begin();
      const [row] = await context.pool.run(
        `INSERT INTO ${table} AS l (name, owner, fence, until_ms) VALUES ($1, $2, 1, ${now} + $3::bigint)
         ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, fence = l.fence + 1, until_ms = ${rowNow("l")} + $3::bigint
         WHERE l.until_ms <= ${rowNow("l")} OR l.owner = excluded.owner
         RETURNING l.fence, l.until_ms, ${flushed}`,
        [name, owner, leaseMs],
      );
      return row === undefined ? null : { name, owner, fence: Number(row["fence"]), untilMs: Number(row["until_ms"]) };
    },
    async renew(lease, leaseMs) {
      assertDuration(leaseMs);
      await begin();
      const [row] = await context.pool.run(
        `UPDATE ${table} AS l SET until_ms = ${rowNow("l")} + $3::bigint WHERE name = $1 AND fence = $2 AND until_ms > 0
         RETURNING until_ms, ${flushed}`,
        [lease.name, lease.fence, leaseMs],
      );
      if (row === undefined)
        throw refused("LEASE_LOST", `The lease ${quote(lease.name)} is held by another, or by nobody.`, { ...lease });
      return { ...lease, untilMs: Number(row["until_ms"]) };
    },
    async release(lease) {
      await begin();
      // The row stays: a fence that was given out must not be given out again.
      await context.pool.run(
        `UPDATE ${table} SET until_ms = 0, fence = fence + 1 WHERE name = $1 AND fence = $2 RETURNING ${flushed}`,
        [lease.name, lease.fence],
      );
    },
  };
}

function assertText(text: unknown, what: string): void {
  if (isColumnText(text, 256)) return;
  throw refused("INPUT_INVALID", `${what} is text of 1 to 256 characters without control characters.`, { text });
}

function assertDuration(leaseMs: number): void {
  if (Number.isSafeInteger(leaseMs) && leaseMs > 0) return;
  throw refused("INPUT_INVALID", "A lease lasts a whole number of milliseconds.", { leaseMs });
}
