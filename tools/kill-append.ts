import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { bundleCli } from "./bundle-cli.ts";
import { repositoryRoot } from "./find-files.ts";
import { createRandom } from "./seeded-random.ts";

/** What the kills left behind, over all rounds. */
export interface KillFigures {
  readonly rounds: number;
  readonly sizeBytes: number;
  readonly acknowledged: number;
  /** Of the acknowledged ones, how many are in the store with the seq and id that was said. */
  readonly found: number;
  readonly duplicates: number;
  readonly outOfOrder: number;
  /** In the store and never acknowledged: allowed, a kill may come between the write and the word. */
  readonly unacknowledged: number;
  readonly seed: number;
}

export interface KillOptions {
  readonly rounds: number;
  /** Of the text of each record. */
  readonly sizeBytes: number;
  readonly seed: number;
  readonly directory: string;
  /** Which store is written to. */
  readonly scheme: "sqlite" | "jsonl";
  /** The file of the command line, run with the condition for sources. @default that of this checkout */
  readonly program?: string;
}

const cliFolder = join(repositoryRoot, "apps/cli");
const sessionKey = "agent:main:cli:direct:kill";

/**
 * Feeds `throughline append` without a pause, kills it with SIGKILL at a random moment, and begins again on the same
 * session, so that each round also starts on what the kill before has left. Then everything is read back once.
 */
export async function killAppend(options: KillOptions): Promise<KillFigures> {
  const { rounds, sizeBytes, seed, directory, scheme, program = join(cliFolder, "bin/throughline.js") } = options;
  const node = ["--conditions=@throughline/source", program];
  const random = createRandom(seed);
  const place = ["--home", directory, "--store", `${scheme}:${join(directory, "store")}`];
  const promised: { readonly seq: number; readonly id: string }[] = [];
  for (let round = 0; round < rounds; round++) {
    promised.push(...(await killOnce(round, sizeBytes, Math.floor(random() * 60), node, place)));
  }
  const stored = await readBack(node, place);
  const bySeq = new Map(stored.map(({ seq, id }) => [seq, id]));
  const positions = stored.map(({ record }) => record.message.content.split(" ", 2).map(Number) as [number, number]);
  const outOfOrder = positions.filter(([round, index], at) => {
    const [lastRound, lastIndex] = positions[at - 1] ?? [-1, -1];
    // Within a round nothing is left out; a new round begins with its first record.
    return round === lastRound ? index !== lastIndex + 1 : round <= lastRound || index !== 0;
  }).length;
  return {
    rounds,
    sizeBytes,
    acknowledged: promised.length,
    found: promised.filter(({ seq, id }) => bySeq.get(seq) === id).length,
    duplicates: stored.length - new Set(positions.map(String)).size,
    outOfOrder: outOfOrder + stored.filter(({ seq }, index) => seq !== index + 1).length,
    unacknowledged: stored.length - promised.length,
    seed,
  };
}

/** One life of the writer; gives what it acknowledged. It dies `delayMs` after its first word. */
function killOnce(
  round: number,
  sizeBytes: number,
  delayMs: number,
  node: readonly string[],
  place: readonly string[],
): Promise<{ seq: number; id: string }[]> {
  const child = spawn(process.execPath, [...node, "append", sessionKey, "--json", ...place], { env: environment() });
  const text = "x".repeat(sizeBytes);
  const acknowledged: { seq: number; id: string }[] = [];
  let index = 0;
  let isOver = false;
  const feed = (): void => {
    for (let isDrained = true; isDrained && !isOver; index++) {
      const draft = { type: "message", message: { role: "user", content: `${round} ${index} ${text}` } };
      isDrained = child.stdin.write(`${JSON.stringify(draft)}\n`);
    }
  };
  // The pipe breaks when the reader dies; that is the point.
  child.stdin.on("error", () => {});
  child.stdin.on("drain", feed);
  let rest = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    if (acknowledged.length === 0) setTimeout(() => child.kill("SIGKILL"), delayMs);
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) acknowledged.push(JSON.parse(line) as { seq: number; id: string });
  });
  let talk = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (talk += chunk));
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      isOver = true;
      if (signal === "SIGKILL") resolve(acknowledged);
      else reject(new Error(`append ended with ${code} before it was killed: ${talk}`));
    });
    feed();
  });
}

interface StoredLine {
  readonly kind: string;
  readonly seq: number;
  readonly id: string;
  readonly record: { readonly message: { readonly content: string } };
}

async function readBack(node: readonly string[], place: readonly string[]): Promise<readonly StoredLine[]> {
  const child = spawn(process.execPath, [...node, "show", sessionKey, "--all-branches", "--json", ...place], {
    env: environment(),
    stdio: ["ignore", "pipe", "inherit"],
  });
  const stored: StoredLine[] = [];
  // Line by line, and of each only what is compared: all of it may be more than a string can hold.
  for await (const line of createInterface({ input: child.stdout, crlfDelay: Infinity })) {
    const { kind, seq, id, record } = JSON.parse(line) as StoredLine;
    const [round, index] = record?.message.content.split(" ", 2) ?? [];
    if (kind === "record") stored.push({ kind, seq, id, record: { message: { content: `${round} ${index}` } } });
  }
  if (child.exitCode === null) await new Promise((resolve) => child.on("close", resolve));
  if (child.exitCode !== 0) throw new Error(`show ended with ${String(child.exitCode)}`);
  return stored;
}

function environment(): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env).filter(([name]) => !name.startsWith("THROUGHLINE_"));
  return Object.fromEntries(entries);
}

/** True when every promise was kept. */
export function isFaultless({ acknowledged, found, duplicates, outOfOrder }: KillFigures): boolean {
  return acknowledged > 0 && found === acknowledged && duplicates === 0 && outOfOrder === 0;
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "100" },
      size: { type: "string", default: "200" },
      store: { type: "string", default: "sqlite" },
      seed: { type: "string" },
      // The bundle starts in a tenth of the time, which is most of a round.
      bundled: { type: "boolean", default: false },
    },
  });
  const scheme = values.store === "jsonl" ? "jsonl" : "sqlite";
  const seed = Number(values.seed ?? Date.now() % 1_000_000);
  const directory = mkdtempSync(join(tmpdir(), "throughline-kill-"));
  const bundle = join(cliFolder, `node_modules/.cache/kill-${process.pid}`);
  const startMs = performance.now();
  try {
    const program = join(bundle, "run.js");
    if (values.bundled) {
      await bundleCli(cliFolder, bundle);
      writeFileSync(program, 'import { main } from "./main.js";\n\nawait main("");\n');
    }
    const figures = await killAppend({
      rounds: Number(values.rounds),
      sizeBytes: Number(values.size),
      seed,
      directory,
      scheme,
      ...(values.bundled ? { program } : {}),
    });
    const { rounds, sizeBytes, acknowledged, found, duplicates, outOfOrder, unacknowledged } = figures;
    process.stdout.write(
      `kill -9 of append, ${scheme} store, ${rounds} rounds, records of ${sizeBytes} bytes, seed ${seed}: ${acknowledged} acknowledged, ${found} found, ` +
        `${acknowledged - found} lost, ${duplicates} twice, ${outOfOrder} out of order, ${unacknowledged} written without a word, ` +
        `${((performance.now() - startMs) / 1000).toFixed(1)} s\n`,
    );
    process.exitCode = isFaultless(figures) ? 0 : 1;
  } finally {
    for (const folder of [directory, bundle]) rmSync(folder, { recursive: true, force: true });
  }
}
