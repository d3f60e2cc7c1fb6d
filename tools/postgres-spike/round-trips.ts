import type pg from "pg";

/** The store's operations that the spike covers. */
export type Operation = "append" | "read" | "load" | "save";

/** How many operations there were, and how many round trips the least and the most costly of a kind took. */
export interface OperationCount {
  operations: number;
  roundTrips: number;
  mostRoundTrips: number;
}

/** One tally for all clients of a run. */
export interface RoundTripTally {
  readonly counts: ReadonlyMap<Operation, OperationCount>;
  /** Queries that the clients sent, and times that the server said it was ready again: one for every round trip. */
  readonly totals: { readonly queries: number; readonly answers: number };
  /** A client whose every query is counted, and a function that charges an operation with the queries it makes. */
  watch(client: pg.Client): WatchedClient;
}

export interface WatchedClient {
  query(name: string, text: string, values: readonly unknown[]): Promise<pg.QueryResult<DatabaseRow>>;
  charge<Result>(operation: Operation, run: () => Promise<Result>): Promise<Result>;
}

export type DatabaseRow = Readonly<Record<string, unknown>>;

/**
 * Charges operations with calls of `client.query`, and counts the server's own ReadyForQuery messages beside them: a
 * round trip made behind that function would make the totals differ. The two are compared over a whole run, because
 * the driver rejects a failed query before the server has said that it is ready.
 */
export function createRoundTripTally(): RoundTripTally {
  const counts = new Map<Operation, OperationCount>();
  const totals = { queries: 0, answers: 0 };
  return {
    counts,
    totals,
    watch(client) {
      let calls = 0;
      const original = client.query.bind(client) as (
        ...query: readonly unknown[]
      ) => Promise<pg.QueryResult<DatabaseRow>>;
      const counted = (...query: readonly unknown[]): Promise<pg.QueryResult<DatabaseRow>> => {
        calls += 1;
        totals.queries += 1;
        return original(...query);
      };
      client.query = counted as typeof client.query;
      client.connection.on("readyForQuery", () => {
        totals.answers += 1;
      });
      return {
        query: (name, text, values) => counted({ name, text, values: [...values] }),
        async charge(operation, run) {
          const callsBefore = calls;
          try {
            return await run();
          } finally {
            const trips = calls - callsBefore;
            const count = counts.get(operation) ?? { operations: 0, roundTrips: 0, mostRoundTrips: 0 };
            counts.set(operation, {
              operations: count.operations + 1,
              roundTrips: count.roundTrips + trips,
              mostRoundTrips: Math.max(count.mostRoundTrips, trips),
            });
          }
        },
      };
    },
  };
}
