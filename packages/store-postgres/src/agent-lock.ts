import { type Clock, ThroughlineError } from "@throughline/core";
import { quote, refused, type StoreLockOptions } from "@throughline/core/internal";
import { holdLock } from "@throughline/store-kit/internal";
import type { ReleaseLock } from "@throughline/store-kit/internal";
import type { ConnectionPool } from "./connection-pool.ts";
import { storeError } from "./postgres-errors.ts";
import { ownNamesOnly } from "./statement-settings.ts";

export interface AgentLock {
  /** The lock uses a pool of its own, because a holder keeps its connection while it works. */
  readonly pool: ConnectionPool;
  /** Holds the name of the schema in quotes, because statements contain it. */
  readonly schema: string;
  readonly clock: Clock;
  readonly namespace: string;
  readonly agentId: string;
}

/**
 * The transaction stays open while the caller works. A limit of the server on idle transactions must not end it. A host
 * that lost its power or network must not keep the lock for the two hours that TCP waits by default. An older server
 * knows fewer of these settings, so unknown ones are left out.
 */
const begin = `BEGIN; ${ownNamesOnly};
  SELECT set_config(s.name, CASE s.name WHEN 'tcp_keepalives_idle' THEN '10' WHEN 'tcp_keepalives_interval' THEN '5'
      WHEN 'tcp_keepalives_count' THEN '3' ELSE '0' END, true)
    FROM pg_settings s WHERE s.name IN ('idle_in_transaction_session_timeout', 'transaction_timeout',
      'tcp_keepalives_idle', 'tcp_keepalives_interval', 'tcp_keepalives_count')`;

/**
 * Runs the caller's work while no other holder of the agent's lock runs any. The lock is an advisory lock of the
 * server, and a transaction holds it. It ends with the connection and the process, and it works behind a pooler. The
 * lock needs no rights on any table and hides nothing: its key is a hash of schema, namespace and agent.
 */
export function holdAgentLock<Result>(
  { pool, schema, clock, namespace, agentId }: AgentLock,
  work: () => Promise<Result>,
  options: StoreLockOptions,
): Promise<Result> {
  const key = JSON.stringify(["throughline", schema, namespace, agentId]);
  const lost = (cause: unknown): ThroughlineError =>
    new ThroughlineError(
      "LEASE_LOST",
      `The lock of agent ${quote(agentId)} ended with its connection while the work ran. Another holder may have worked at the same time.`,
      {
        outcome: "unknown",
        cause,
        details: { agentId, namespace, place: pool.place },
        remedy: "Check what the work has changed before repeating it.",
      },
    );
  const tryLock = async (signal: AbortSignal | undefined): Promise<ReleaseLock | null> => {
    const connection = await pool.lend(signal);
    try {
      await connection.run(begin);
      const [row] = await connection.run(
        `SELECT pg_try_advisory_xact_lock(hashtextextended($1::text COLLATE "C", 0)) AS is_held`,
        [key],
      );
      if (row?.["is_held"] !== true) {
        await connection.run("ROLLBACK");
        connection.giveBack();
        return null;
      }
    } catch (error) {
      connection.giveBack(error);
      throw storeError(error, "not-applied", pool.place);
    }
    return async () => {
      try {
        await connection.run("COMMIT");
        connection.giveBack();
      } catch (error) {
        connection.giveBack(error);
        throw lost(error);
      }
    };
  };
  const timedOut = (waitedMs: number): ThroughlineError =>
    refused("STORE_LOCKED", `The lock of agent ${quote(agentId)} was held by another connection for ${waitedMs} ms.`, {
      agentId,
      namespace,
      waitedMs,
    });
  return holdLock({ clock, tryLock, timedOut }, work, options);
}
