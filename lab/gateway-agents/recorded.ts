import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { type Asker, factsOf } from "./request-facts.ts";
import type { Stand } from "./stand.ts";

/** What the gateway stored of a program's calls. */
export interface Recorded {
  /** Requests that the provider received, each attempt. */
  readonly calls: number;
  readonly stored: number;
  /** Of the provider's requests those that the log gives back byte for byte. */
  readonly givenBack: number;
  readonly sessions: number;
  /** Calls that are not where a person would look. */
  readonly elsewhere: number;
  readonly probes: readonly string[];
  readonly problems: readonly string[];
}

interface StoredCall {
  readonly session: string;
  readonly callId: string;
  readonly outcome: string;
  readonly sha256: string;
  readonly asker: Asker;
}

type Items<Item> = { readonly items: readonly Item[] };

const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/**
 * Compares what the provider received with what the log has, and where it has it.
 *
 * @param lastAnswer what the program printed in the end
 */
export async function readRecorded(
  { simulator, gateway, token, probes }: Stand,
  lastAnswer: string,
): Promise<Recorded> {
  if (gateway === null) throw new TypeError("nothing was recorded without a gateway");
  const get = (path: string): Promise<Response> =>
    fetch(`${gateway.url}/api/v1${path}`, { headers: { authorization: `Bearer ${token}` } });
  const read = async <Value>(path: string): Promise<Value> => (await (await get(path)).json()) as Value;

  const listed = async (): Promise<readonly StoredCall[]> => {
    const found: StoredCall[] = [];
    const { items } = await read<Items<{ key: string }>>("/sessions?limit=1000");
    for (const { key } of items) {
      const calls = await read<Items<{ callId: string; outcome: string }>>(`/sessions/${key}/calls?tail=500`);
      for (const { callId, outcome } of calls.items) {
        const answer = await get(`/sessions/${key}/calls/${callId}/request?payload=bytes`);
        const bytes = Buffer.from(await answer.arrayBuffer());
        const asker = answer.status === 200 ? factsOf({ body: JSON.parse(bytes.toString()) as unknown }).asker : "main";
        found.push({ session: key, callId, outcome, sha256: answer.status === 200 ? hashOf(bytes) : "", asker });
      }
    }
    return found;
  };
  const received = simulator.requests.filter(({ path }) => !path.includes("count_tokens"));
  let stored = await listed();
  for (let waits = 0; waits < 40 && stored.length < received.length; waits++) {
    await sleep(250);
    stored = await listed();
  }
  const left = new Map<string, number>();
  for (const { sha256 } of stored) left.set(sha256, (left.get(sha256) ?? 0) + 1);
  const givenBack = received.filter(({ bytes }) => {
    const sha256 = hashOf(bytes);
    const count = left.get(sha256) ?? 0;
    left.set(sha256, count - 1);
    return count > 0;
  }).length;

  const problems: string[] = [];
  if (stored.length !== received.length) problems.push(`${received.length} calls, ${stored.length} stored`);
  if (givenBack !== received.length) problems.push(`${received.length} calls, ${givenBack} given back`);
  for (const outcome of ["answered", "aborted"]) {
    const [came, kept] = [received, stored].map((list) => list.filter((one) => one.outcome === outcome).length);
    if (came !== kept) problems.push(`${came} calls were ${outcome}, ${kept} are stored as that`);
  }
  for (const refusal of simulator.refusals)
    if (refusal.kind !== "overflow") problems.push(`refused: ${refusal.message}`);
  const main = stored.find(({ asker }) => asker === "main")?.session ?? "";
  const spawned = new Map<string, unknown>();
  for (const key of new Set(stored.map(({ session }) => session)))
    spawned.set(key, (await read<{ entry: { spawnedBy?: unknown } }>(`/sessions/${key}/entry`)).entry.spawnedBy);
  const elsewhere = stored.filter(({ session, asker }) => {
    if (asker === "main") return session !== main;
    if (asker === "title") return session !== `${main}-side`;
    return session === main || session.endsWith("-side") || spawned.get(session) !== main;
  });
  for (const { session, asker } of elsewhere) problems.push(`a call of the ${asker} is in ${session}, main is ${main}`);
  problems.push(...commandLineProblems(gateway.database, main, lastAnswer));
  return {
    calls: received.length,
    stored: stored.length,
    givenBack,
    sessions: spawned.size,
    elsewhere: elsewhere.length,
    probes: [...probes].toSorted(),
    problems,
  };
}

/** The command line reads what the gateway stored. */
function commandLineProblems(database: string, key: string, lastAnswer: string): readonly string[] {
  const bin = join(import.meta.dirname, "../../apps/cli/bin/throughline.js");
  const store = ["--store", `sqlite:${database}`, "--home", join(database, "../home")];
  const commands = [
    { words: ["sessions", "--quiet"], has: key },
    { words: ["show", key], has: lastAnswer },
    { words: ["search", "The first answer", "--quiet"], has: key },
    { words: ["explain", key], has: "call" },
    { words: ["context", key], has: " messages" },
  ];
  return commands.flatMap(({ words, has }) => {
    const args = ["--conditions=@throughline/source", bin, ...words, ...store];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", timeout: 60_000 });
    return status === 0 && stdout.includes(has) ? [] : [`throughline ${words.join(" ")}: ${status} ${stdout}${stderr}`];
  });
}
