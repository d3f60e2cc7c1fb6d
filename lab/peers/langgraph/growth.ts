// A conversation of a compiled graph on LangGraph's SqliteSaver and on ours over SQLite, by turns: bytes on the disk, and what a
// turn takes. Copied into a folder that has the packages. Usage: node growth.ts FOLDER_OF_THE_CHECKOUT TURNS,TURNS
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import process from "node:process";
import { pathToFileURL } from "node:url";

interface Graph {
  invoke(input: unknown, config: unknown): Promise<unknown>;
}

interface Builder {
  addNode(name: string, node: unknown): Builder;
  addEdge(from: string, to: string): Builder;
  compile(options: { readonly checkpointer: unknown }): Graph;
}

type Class<Made> = new (fields: unknown) => Made;

const [root = "", sizes = "100,300"] = process.argv.slice(2);
const load = async (name: string): Promise<Record<string, never>> => (await import(name)) as Record<string, never>;
const ours = (path: string): Promise<Record<string, never>> =>
  load(pathToFileURL(join(root, "packages", path, "src/index.ts")).href);
const graphs = (await load("@langchain/langgraph")) as unknown as {
  readonly StateGraph: Class<Builder>;
  readonly MessagesAnnotation: unknown;
};
const messages = (await load("@langchain/core/messages")) as unknown as Record<string, Class<unknown>>;
const { SqliteSaver } = (await load("@langchain/langgraph-checkpoint-sqlite")) as unknown as {
  readonly SqliteSaver: { fromConnString(path: string): { readonly db: { close(): void } } };
};
const { createCheckpointSaver } = (await ours("adapter-langgraph")) as unknown as {
  createCheckpointSaver(options: object): unknown;
};
const { createSqliteStore } = (await ours("store-sqlite")) as unknown as {
  createSqliteStore(options: object): { close(): Promise<void> };
};

const words = (length: number): string => "lorem ipsum ".repeat(Math.ceil(length / 12)).slice(0, length);
const message = (name: string, fields: object): unknown => new (messages[name] as Class<unknown>)(fields);

/** A question, a call, a result, an answer: about 1.9 kB. */
function graphOn(checkpointer: unknown): Graph {
  let made = 0;
  const say =
    (name: string, fields: () => object): (() => object) =>
    () => {
      made += 1;
      return { messages: [message(name, { id: `m${made}`, ...fields() })] };
    };
  const call = (): object => ({ content: "", tool_calls: [{ id: `c${made}`, name: "read", args: { path: "a.txt" } }] });
  return new graphs.StateGraph(graphs.MessagesAnnotation)
    .addNode("plan", say("AIMessage", call))
    .addNode(
      "read",
      say("ToolMessage", () => ({ tool_call_id: `c${made - 1}`, content: words(1000) })),
    )
    .addNode(
      "answer",
      say("AIMessage", () => ({ content: words(500) })),
    )
    .addEdge("__start__", "plan")
    .addEdge("plan", "read")
    .addEdge("read", "answer")
    .addEdge("answer", "__end__")
    .compile({ checkpointer });
}

function bytesOf(path: string): number {
  return ["", "-wal"].reduce((sum, end) => sum + (statSync(path + end, { throwIfNoEntry: false })?.size ?? 0), 0);
}

const rows: string[] = [];
const perTurn: Record<string, number[]> = { ours: [], theirs: [] };
for (const turns of sizes.split(",").map(Number)) {
  const folder = mkdtempSync(join(import.meta.dirname, "growth-"));
  const paths = { ours: join(folder, "ours.db"), theirs: join(folder, "theirs.db") };
  const store = createSqliteStore({ path: paths.ours });
  const saver = SqliteSaver.fromConnString(paths.theirs);
  const kept = { ours: graphOn(createCheckpointSaver({ store })), theirs: graphOn(saver) };
  const times: Record<string, number[]> = { ours: [], theirs: [] };
  for (let turn = 1; turn <= turns; turn++)
    for (const [name, graph] of Object.entries(kept)) {
      const start = performance.now();
      const asked = message("HumanMessage", { id: `u${turn}`, content: words(200) });
      await graph.invoke({ messages: [asked] }, { configurable: { thread_id: "t" } });
      times[name]?.push(performance.now() - start);
    }
  await store.close();
  saver.db.close();
  for (const [name, path] of Object.entries(paths)) {
    const last = (times[name] ?? []).slice(-20).toSorted((one, other) => one - other)[10] ?? 0;
    perTurn[name]?.push(bytesOf(path) / turns);
    rows.push(`${name} ${turns} turns: ${bytesOf(path)} bytes, a turn at the end ${last.toFixed(1)} ms`);
  }
  rmSync(folder, { recursive: true });
}
process.stdout.write(`${rows.join("\n")}\n`);
const growth = (name: string): number => (perTurn[name]?.at(-1) ?? 0) / (perTurn[name]?.[0] ?? 1);
const factor = (perTurn["theirs"]?.at(-1) ?? 0) / (perTurn["ours"]?.at(-1) ?? 1);
process.stdout.write(
  `growth of a turn's bytes: ours ${growth("ours").toFixed(2)}, SqliteSaver ${growth("theirs").toFixed(2)}, which takes ${factor.toFixed(1)} times ours\n`,
);
// Linear: what a turn adds stays the same.
process.exitCode = growth("ours") < 1.15 ? 0 : 1;
