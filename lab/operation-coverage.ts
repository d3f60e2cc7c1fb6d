import { Session, type Profiler } from "node:inspector/promises";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createServer } from "../apps/server/src/index.ts";
import type { AppendDraft, SessionStore } from "../packages/core/src/index.ts";
import { createGateway } from "../packages/gateway/src/index.ts";
import { offline } from "../packages/models/src/offline-model.ts";
import { createSessions } from "../packages/session/src/index.ts";
import { createJsonlStore } from "../packages/store-jsonl/src/index.ts";
import { createMemoryStore } from "../packages/store-memory/src/index.ts";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";
import { importPaths } from "../packages/transfer/src/index.ts";
import { repositoryRoot } from "../tools/find-files.ts";

/**
 * Prints how many files and functions of this repository one operation enters when it has run before. A reader follows
 * these from the public method to the first byte. `--list append/jsonl` names the files with their functions.
 */
const stores: Readonly<Record<string, (folder: string) => SessionStore>> = {
  memory: () => createMemoryStore(),
  sqlite: (folder) => createSqliteStore({ path: join(folder, "store.db") }),
  jsonl: (folder) => createJsonlStore({ root: folder }),
};

const ref = { namespace: "", agentId: "main", key: "agent:main:coverage" };
const drafts: readonly AppendDraft[] = [{ type: "message", message: { role: "user", content: "a message" } }];

/** Is the call that is measured, and ends what it was prepared with. */
interface Prepared {
  readonly run: () => Promise<unknown>;
  readonly end?: () => Promise<void>;
}

/** Each operation prepares what it needs. */
const operations: Readonly<Record<string, (store: SessionStore, folder: string) => Promise<Prepared>>> = {
  append: async (store) => {
    await store.save(ref, { sessionId: "session-1" }, { ifRevision: null });
    return { run: () => store.append(ref, drafts) };
  },
  list: async (store) => {
    for (const name of ["a", "b", "c"])
      await store.save({ ...ref, key: `agent:main:${name}` }, { sessionId: `session-${name}` }, { ifRevision: null });
    return { run: () => store.list() };
  },
  import: async (store, folder) => ({
    run: () => {
      const sessionId = randomUUID();
      const path = join(folder, `${sessionId}.jsonl`);
      writeFileSync(path, claudeCodeLines(sessionId));
      return Array.fromAsync(importPaths(store, [path]));
    },
  }),
  turn: async (store) => {
    const sessions = createSessions({ store, model: offline() });
    const session = await sessions.open("coverage");
    return { run: () => session.runTurn("hello") };
  },
  "http-append": async (store) => {
    const server = await createServer({ openStore: () => store, port: 0 });
    const rights = { namespace: "", agents: "*", scopes: ["read", "write"], expiresAtMs: null } as const;
    const { text } = await server.tokens.create(rights, null);
    const headers = { authorization: `Bearer ${text}`, "content-type": "application/json" };
    const url = `${server.url}/api/v1/sessions/coverage`;
    await fetch(url, { method: "PUT", headers, body: "{}" });
    const body = JSON.stringify({ drafts });
    const run = async (): Promise<void> => {
      const { status } = await fetch(`${url}/records`, { method: "POST", headers, body });
      if (status !== 201) throw new Error(`status ${status}`);
    };
    return { run, end: () => server.close() };
  },
  gateway: async (store) => {
    const reply = { id: "m", type: "message", role: "assistant", model: "m", content: [{ type: "text", text: "Hi." }] };
    const provider = createHttpServer((request, response) => {
      request.resume().on("end", () => response.writeHead(200, json).end(JSON.stringify(reply)));
    });
    const folder = mkdtempSync(join(tmpdir(), "throughline-coverage-spool-"));
    const gateway = await createGateway({
      store,
      spoolFolder: folder,
      upstreams: { claude: { api: "anthropic", baseUrl: await addressOf(provider) } },
      authenticate: () => ({ id: "ada", namespace: "", agents: "*", scopes: ["gateway:claude"] }),
    });
    const server = createHttpServer((request, response) => void gateway.handle(request, response));
    const url = await addressOf(server);
    const messages: object[] = [];
    // The next call of a conversation, until the store has it.
    const run = async (): Promise<void> => {
      messages.push({ role: "user", content: "Hello?" });
      const body = JSON.stringify({ model: "m", max_tokens: 9, messages });
      const answer = await fetch(`${url}/claude/v1/messages`, { method: "POST", headers: json, body });
      messages.push({ role: "assistant", content: ((await answer.json()) as typeof reply).content });
      while (gateway.unstored.calls > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    const end = async (): Promise<void> => {
      for (const one of [server, provider]) {
        one.close();
        one.closeAllConnections();
      }
      await gateway.close();
      await store.close();
      rmSync(folder, { recursive: true });
    };
    return { run, end };
  },
};

/** Returns a transcript of Claude Code with 26 records: questions and answers in turn. */
function claudeCodeLines(sessionId: string): string {
  const lines = Array.from({ length: 26 }, (_, at) => {
    const role = at % 2 === 0 ? "user" : "assistant";
    const content = role === "user" ? `question ${at}` : [{ type: "text", text: `answer ${at}` }];
    const times = { timestamp: new Date(Date.UTC(2026, 0, 1, 0, at)).toISOString() };
    const ids = { uuid: randomUUID(), parentUuid: null, sessionId, cwd: "/work", version: "2.0.0" };
    const message =
      role === "user" ? { role, content } : { role, content, id: `msg_${at}`, model: "claude-sonnet-4-5" };
    return JSON.stringify({ type: role, ...ids, ...times, message });
  });
  return `${lines.join("\n")}\n`;
}

const json = { "content-type": "application/json" };

async function addressOf(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as { readonly port: number }).port}`;
}

type Entered = ReadonlyMap<string, readonly string[]>;

/** Runs an operation several times, and returns the functions that its last run entered, by file. */
async function enteredBy(operation: string, storeName: string): Promise<Entered> {
  const folder = mkdtempSync(join(tmpdir(), "throughline-coverage-"));
  const store = stores[storeName]?.(folder);
  const prepare = operations[operation];
  if (store === undefined || prepare === undefined) throw new Error(`There is no ${operation}/${storeName}.`);
  const inspector = new Session();
  inspector.connect();
  const { run, end = () => store.close() } = await prepare(store, folder);
  try {
    for (let warm = 0; warm < 3; warm++) await run();
    // Work behind the log ends before the count begins.
    await new Promise((resolve) => setTimeout(resolve, 300));
    await inspector.post("Profiler.enable");
    await inspector.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    await inspector.post("Profiler.takePreciseCoverage");
    await run();
    const { result } = await inspector.post("Profiler.takePreciseCoverage");
    return byFile(result);
  } finally {
    inspector.disconnect();
    await end();
    rmSync(folder, { recursive: true, force: true });
  }
}

function byFile(result: readonly Profiler.ScriptCoverage[]): Entered {
  const own = pathToFileURL(`${repositoryRoot}/`).href;
  const files = new Map<string, readonly string[]>();
  for (const { url, functions } of result) {
    if (!url.startsWith(own) || url.includes("/node_modules/") || url.endsWith("/operation-coverage.ts")) continue;
    // The function without a name is the module itself.
    const entered = functions.flatMap(({ functionName, ranges }) =>
      functionName !== "" && (ranges[0]?.count ?? 0) > 0 ? [functionName] : [],
    );
    const unnamed = functions.filter(
      ({ functionName, ranges }) => functionName === "" && (ranges[0]?.count ?? 0) > 0 && ranges[0]?.startOffset !== 0,
    );
    const all = [...entered, ...unnamed.map(() => "(unnamed)")];
    if (all.length > 0) files.set(relative(repositoryRoot, fileURLToPath(url)), all);
  }
  return files;
}

function count(files: Entered): string {
  return `${files.size} files, ${[...files.values()].flat().length} functions`;
}

async function main(asked: string | undefined): Promise<void> {
  if (asked !== undefined) {
    const [operation = "", storeName = ""] = asked.split("/");
    for (const [path, names] of await enteredBy(operation, storeName)) console.log(`${path}: ${names.join(", ")}`);
    return;
  }
  for (const operation of Object.keys(operations))
    for (const storeName of Object.keys(stores)) {
      const files = await enteredBy(operation, storeName);
      const own = new Map([...files].filter(([path]) => path.startsWith(`packages/store-${storeName}/`)));
      console.log(`${operation} ${storeName}: ${count(files)}; the store's own: ${count(own)}`);
    }
}

await main(process.argv[2] === "--list" ? process.argv[3] : undefined);
