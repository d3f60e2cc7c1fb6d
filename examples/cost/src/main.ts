// What users spend, and a budget that refuses the next turn.
// node src/main.ts ask USER TOPIC QUESTION  answers, while the user has spent less than BUDGET dollars in 24 hours
// node src/main.ts report                   prints the spend of all users, by user, by session and by model
import process from "node:process";
import { anthropic } from "@throughline/models/anthropic";
import { createSessions } from "@throughline/session";
import { createSqliteStore } from "@throughline/store-sqlite";

const [command, user = "", topic = "", ...words] = process.argv.slice(2);
const { ANTHROPIC_API_KEY: apiKey = "", ANTHROPIC_BASE_URL: baseUrl, SESSIONS = "sessions.db" } = process.env;
const budgetUsd = Number(process.env["BUDGET"] ?? 1);
const dayMs = 24 * 60 * 60 * 1000;
const store = createSqliteStore({ path: SESSIONS });
const model = anthropic("claude-sonnet-5", { apiKey, baseUrl });
const sessions = createSessions({ store, model });

/** A session of a user has the key `agent:main:direct:USER:thread:TOPIC`. */
const keyOf = (of: string, about: string): string => `agent:main:direct:${of}:thread:${about}`;
const userOf = (key: string): string => /^agent:main:direct:([^:]+):/.exec(key)?.[1] ?? "another";
const dollars = (usd: number | null): string => (usd === null ? "unknown" : `$${usd.toFixed(6)}`);

interface Spend {
  readonly user: string;
  readonly session: string;
  readonly model: string;
  readonly costUsd: number;
}

/** One row for each session and model. `sinceMs` counts in quarters of an hour. */
async function spend(sinceMs?: number): Promise<readonly Spend[]> {
  const { rows, unpricedModels } = await sessions.usage({
    by: ["session", "model"],
    ...(sinceMs === undefined ? {} : { sinceMs }),
  });
  // Without a price a budget would let everything pass: set one in the configuration.
  for (const name of unpricedModels) console.error(`The price of ${name ?? "a model without a name"} is unknown.`);
  return rows.map(({ group, costUsd }) => {
    const key = group.session ?? "";
    return { user: userOf(key), session: key, model: group.model ?? "unknown", costUsd: costUsd ?? 0 };
  });
}

function print(rows: readonly Spend[], by: "user" | "session" | "model"): void {
  const sums = new Map<string, number>();
  for (const row of rows) sums.set(row[by], (sums.get(row[by]) ?? 0) + row.costUsd);
  for (const [name, usd] of sums) console.log(`${by}\t${name}\t${dollars(usd)}`);
}

async function ask(): Promise<void> {
  const own = (await spend(Date.now() - dayMs)).filter((row) => row.user === user);
  const spentUsd = own.reduce((sum, { costUsd }) => sum + costUsd, 0);
  if (spentUsd >= budgetUsd) {
    console.error(`${user} has spent ${dollars(spentUsd)} of ${dollars(budgetUsd)} in 24 hours. Ask again later.`);
    process.exitCode = 3;
    return;
  }
  const session = await sessions.open(keyOf(user, topic));
  const { text, costUsd } = await session.runTurn(words.join(" "));
  console.log(text);
  console.error(`this turn ${dollars(costUsd)}, this session ${dollars(session.spend.costUsd)}`);
}

try {
  if (command === "report") {
    const rows = await spend();
    for (const by of ["user", "session", "model"] as const) print(rows, by);
  } else if (command === "ask" && user !== "" && topic !== "" && words.length > 0 && apiKey !== "") await ask();
  else {
    console.error("ANTHROPIC_API_KEY=… node src/main.ts ask USER TOPIC QUESTION, or node src/main.ts report");
    process.exitCode = 2;
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await sessions.close();
  await store.close();
}
