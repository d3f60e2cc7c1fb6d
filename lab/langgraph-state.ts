// Compares the threads of LangGraph that an import makes with what `getState` of a compiled graph has of the same database, at each
// checkpoint and at the head. The packages are installed into a folder of their own, from the npm registry, without install scripts.
// node --conditions=@throughline/source lab/langgraph-state.ts [folder that keeps the packages]
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { SessionRef, StoredRecord } from "../packages/core/src/index.ts";
import { buildContext } from "../packages/history/src/index.ts";
import type { NeutralMessage } from "../packages/history/src/neutral-message.ts";
import { createMemoryStore } from "../packages/store-memory/src/index.ts";
import { importPaths } from "../packages/transfer/src/index.ts";
import { skippedPrefix } from "../tools/long-suite.ts";

const packages = {
  "@langchain/core": "1.3.4",
  "@langchain/langgraph": "1.7.3",
  "@langchain/langgraph-checkpoint-sqlite": "1.0.4",
  zod: "4.2.1",
};

/** What the graph has at a checkpoint; an empty one is the head. */
interface GraphState {
  readonly thread: string;
  readonly checkpoint: string;
  readonly messages: readonly string[];
}

/** A thread as an import made it. */
interface Thread {
  readonly records: readonly StoredRecord[];
  readonly headId: string | null;
}

/** False without a registry. */
function install(folder: string): boolean {
  mkdirSync(folder, { recursive: true });
  copyFileSync(join(import.meta.dirname, "peers/langgraph/graph.ts"), join(folder, "graph.ts"));
  if (Object.keys(packages).every((name) => existsSync(join(folder, "node_modules", name)))) return true;
  // The one that brings its binaries along: nothing is compiled.
  const overrides = { "better-sqlite3": "13.2.0" };
  const manifest = { name: "langgraph-peer", private: true, type: "module", dependencies: packages, overrides };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  const options = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"];
  return spawnSync("npm", options, { cwd: folder, stdio: "ignore" }).status === 0;
}

function statesOf(folder: string, args: readonly string[]): readonly GraphState[] {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, "graph.ts"), ...args], {
    cwd: folder,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(stderr.slice(0, 2000));
  return JSON.parse(stdout) as readonly GraphState[];
}

async function importedThreads(path: string): Promise<ReadonlyMap<string, Thread>> {
  await using store = createMemoryStore();
  const threads = new Map<string, Thread>();
  for await (const { agentId, key, sessionId, state, error } of importPaths(store, [path])) {
    if (state !== "imported" || agentId === null || key === null) throw error ?? new Error(`${path}: ${state}`);
    const ref: SessionRef = { namespace: "", agentId, key };
    const pages = await Array.fromAsync(store.read(ref));
    const session = await store.load(ref);
    threads.set(sessionId ?? "", {
      records: pages.flatMap(({ records }) => records),
      headId: session?.head.headId ?? null,
    });
  }
  return threads;
}

/** The head that a thread had behind a checkpoint: its last record, or that of its parent. */
function headAt(records: readonly StoredRecord[], checkpoint: string): string | null {
  const own = records.findLast(
    ({ side, record }) => !side && (record["derivedFrom"] as { id?: string } | undefined)?.id === checkpoint,
  );
  const noted = records.find(({ id }) => id === checkpoint);
  if (noted === undefined) throw new Error(`no record of the checkpoint ${checkpoint}`);
  return own?.id ?? noted.parentId;
}

const types: Readonly<Record<string, string>> = {
  user: "human",
  assistant: "ai",
  toolResult: "tool",
  system: "system",
};

/** As `graph.ts` writes a message. */
function shown(message: NeutralMessage): string {
  const { role, content } = message;
  const words = content.map((block) => (block.type === "text" ? block.text : "")).join("");
  const calls = content.map((block) =>
    block.type === "toolCall" ? ` ?${block.id} ${block.name} ${JSON.stringify(block.arguments)}` : "",
  );
  return `${types[role] ?? role}${role === "toolResult" ? ` =${message.toolCallId}` : ""}: ${words}${calls.join("")}`;
}

const problems: string[] = [];
let compared = 0;

async function compare(path: string, states: readonly GraphState[]): Promise<void> {
  const threads = await importedThreads(path);
  for (const { thread, checkpoint, messages } of states) {
    const { records, headId } = threads.get(thread) ?? { records: [], headId: null };
    const head = checkpoint === "" ? headId : headAt(records, checkpoint);
    const ours = buildContext(records, { headId: head }).messages.map(shown);
    compared += 1;
    if (JSON.stringify(ours) !== JSON.stringify(messages))
      problems.push(
        `${thread} at ${checkpoint || "its head"}: ${JSON.stringify(ours)} instead of ${JSON.stringify(messages)}`,
      );
  }
}

const ownFolder = process.argv[2] === undefined ? mkdtempSync(join(tmpdir(), "throughline-langgraph-")) : null;
const folder = process.argv[2] ?? ownFolder ?? "";
try {
  if (install(folder)) {
    const database = join(mkdtempSync(join(folder, "run-")), "graph.sqlite");
    await compare(database, statesOf(folder, [database]));
    const corpus = join(process.env["THROUGHLINE_CORPUS"] ?? "", "foreign/langgraph/checkpoints.sqlite");
    if (existsSync(corpus)) {
      const copy = `${database}-copy`;
      // The saver puts a log beside a database that it opens, and the corpus may be closed to writing.
      writeFileSync(copy, readFileSync(corpus));
      await compare(corpus, statesOf(folder, [copy, "thread-1"]));
    }
    const found = problems.length === 0 ? "as getState has them" : `${problems.length} differ\n${problems.join("\n")}`;
    process.stdout.write(`langgraph: ${compared} states of threads, ${found}\n`);
    process.exitCode = problems.length === 0 ? 0 : 1;
  } else process.stdout.write(`${skippedPrefix}the packages of LangGraph could not be installed\n`);
} finally {
  if (ownFolder !== null) rmSync(ownFolder, { recursive: true, force: true });
}
