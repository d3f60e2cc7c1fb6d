import { type Clock, ThroughlineError } from "@throughline/core";
import { quote, refused, type StoreLockOptions } from "@throughline/core/internal";
import { holdLock } from "@throughline/store-kit";
import { type ReleaseLock } from "@throughline/store-kit/internal";
import type { ConnectionPool } from "./connection-pool.ts";
import { storeError } from "./postgres-errors.ts";
import { ownNamesOnly } from "./statement-settings.ts";

/** Whose lock, and of which store. */
export interface AgentLock {
  /** Holders keep their connection while they work, so it is not the pool of the store's operations. */
  readonly pool: ConnectionPool;
  /** The quoted name of the schema. */
  readonly schema: string;
  readonly clock: Clock;
  readonly namespace: string;
  readonly agentId: string;
}

/**
 * The transaction stays open while the caller works. A limit of the server on idle transactions must not end it. A host
 * that lost its power or network must not keep the lock for the two hours that TCP waits by default. The server of an
 * older version knows fewer of these settings.
 */
const begin = `BEGIN; ${ownNamesOnly};
  SELECT set_config(s.name, CASE s.name WHEN 'tcp_keepalives_idle' THEN '10' WHEN 'tcp_keepalives_interval' THEN '5'
      WHEN 'tcp_keepalives_count' THEN '3' ELSE '0' END, true)
    FROM pg_settings s WHERE s.name IN ('idle_in_transaction_session_timeout', 'transaction_timeout',
      'tcp_keepalives_idle', 'tcp_keepalives_interval', 'tcp_keepalives_count')`;

/**
 * Runs work of a caller while no other holder of the agent's lock does. The lock is an advisory one of the server, held by
 * a transaction: it ends with its connection, so with its process, and works behind a pooler. It needs no rights on any
 * table, and hides nothing: the key is a hash of schema, namespace and agent.
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
