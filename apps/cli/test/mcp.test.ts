import { mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Client, StreamableHTTPClientTransport, type ClientOptions } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { isLongRun } from "../../../tools/test-size.ts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  assistant,
  binPath,
  cleanEnvironment,
  objects,
  runHere,
  seed,
  sourceCondition,
  start,
  temporaryDirectory,
  user,
} from "./harness.ts";

const key = "agent:main:cli:direct:kafka";
const theirs = "agent:work:cli:direct:plans";
const generations: readonly (readonly [name: string, options: ClientOptions])[] = [
  ["2025-11-25", {}],
  ["2026-07-28", { versionNegotiation: { mode: { pin: "2026-07-28" } } }],
];

let directory = temporaryDirectory();
const cleanups: (() => Promise<void> | void)[] = [];
beforeEach(async () => {
  directory = temporaryDirectory();
  await seed(directory.path, [
    { key, drafts: [user("how do I rotate the keys"), assistant("by kafka-rotate")] },
    { key: theirs, drafts: [user("rotate zanzibar")] },
  ]);
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  directory.remove();
});

const textOf = async (client: Client, name: string, args: Record<string, unknown> = {}): Promise<string> => {
  const [first] = (await client.callTool({ name, arguments: args })).content;
  return first?.type === "text" ? first.text : "";
};

/** The blocks of the guide that tell a client of the server, by the file they are for. */
function registrations(): ReadonlyMap<string, string> {
  const guide = readFileSync(join(import.meta.dirname, "../../../docs/guides/memory-for-mcp-clients.md"), "utf8");
  const blocks = guide.matchAll(/<!-- (\S+) -->\n+```\w+\n([\s\S]*?)```/g);
  return new Map(Array.from(blocks, ([, file = "", block = ""]) => [file, block]));
}

interface Launch {
  readonly command: string | readonly string[];
  readonly args?: readonly string[];
}

/** The command that a client starts by a block: the JSON of most, the TOML of Codex. */
function launchOf(file: string, block: string): readonly string[] {
  if (file.endsWith(".toml")) {
    const [command = "", args = ""] = Array.from(block.matchAll(/ = (.*)/g), ([, value = ""]) => value);
    return [JSON.parse(command) as string, ...(JSON.parse(args) as string[])];
  }
  const document = JSON.parse(block) as Readonly<Record<string, { readonly throughline: Launch }>>;
  const [servers] = Object.values(document);
  const { command = "", args = [] } = servers?.throughline ?? {};
  return [command, args].flat();
}

/** The same with the program of this checkout in the place of `npx`. */
function configured(file: string): { readonly command: string; readonly args: string[] } {
  const launch = launchOf(file, registrations().get(file) ?? "");
  return { command: process.execPath, args: [sourceCondition, binPath, ...launch.slice(3)] };
}

it("is registered with each client by the same command", () => {
  const launches = Array.from(registrations(), ([file, block]) => [file, launchOf(file, block)]);
  expect(launches).toEqual(
    [".mcp.json", "config.toml", "opencode.json", ".vscode/mcp.json", "mcpServers"].map((file) => [
      file,
      ["npx", "-y", "@throughline/cli", "mcp"],
    ]),
  );
});

describe.each(generations)("an MCP client of protocol %s", (version, options) => {
  it("is registered by the guide's JSON and started from an empty folder [MCP]", { tags: ["slow"] }, async () => {
    const cwd = join(directory.path, "empty");
    mkdirSync(cwd);
    const transport = new StdioClientTransport({
      ...configured(".mcp.json"),
      cwd,
      env: cleanEnvironment(directory.path),
      stderr: "pipe",
    });
    const client = new Client({ name: "test", version: "1" }, options);
    await client.connect(transport);
    cleanups.push(() => client.close());
    expect(client.getNegotiatedProtocolVersion()).toBe(version);
    expect((await client.listTools()).tools).toHaveLength(4);
    expect(await textOf(client, "search_sessions", { query: "rotate" })).toContain(`"${key}" #1 user`);
    expect(await textOf(client, "read_session", { key: theirs })).toBe("There is no such session.");
  });

  it("speaks streamable HTTP with a token, which narrows what it sees", { tags: ["slow"] }, async () => {
    const tokenOf = async (...args: readonly string[]): Promise<string> =>
      (await runHere(directory.path, ["token", "create", "x", "--quiet", ...args])).stdout.trim();
    const all = await tokenOf("--scopes", "read");
    const work = await tokenOf("--scopes", "read", "--agents", "work");
    const nobody = await tokenOf("--scopes", "read", "--agents", "nobody");
    const writer = await tokenOf("--scopes", "write");
    const { url } = await serveHttp(["--all-agents", "--allow-notes"]);
    const connect = async (token: string): Promise<Client> => {
      const client = new Client({ name: "test", version: "1" }, options);
      const authProvider = { token: async () => token };
      await client.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider }));
      cleanups.push(() => client.close());
      return client;
    };
    const client = await connect(all);
    expect(await textOf(client, "search_sessions", { query: "rotate" })).toMatch(/kafka[\s\S]*plans|plans[\s\S]*kafka/);
    // Without the scope to write no note, whatever the command allows.
    expect((await client.listTools()).tools.map(({ name }) => name)).not.toContain("add_note");
    const narrow = await connect(work);
    expect(await textOf(narrow, "search_sessions", { query: "rotate" })).not.toContain("kafka");
    expect(await textOf(narrow, "read_session", { key })).toBe("There is no such session.");
    await connect(nobody).then((other) => expect(textOf(other, "list_sessions")).resolves.toBe("[No sessions.]"));
    await expect(connect(writer)).rejects.toThrow();
    const [id = ""] = /(?<=^tl_)[^_]+/.exec(all) ?? [];
    await runHere(directory.path, ["token", "revoke", id]);
    await new Promise((resolve) => setTimeout(resolve, 600));
    await expect(textOf(client, "list_sessions")).rejects.toThrow();
  });
});

/** Serves over HTTP in this process. */
async function serveHttp(args: readonly string[] = []): Promise<{ readonly url: string }> {
  const stop = new AbortController();
  let printed = "";
  const running = runHere(directory.path, ["mcp", "--http", "127.0.0.1:0", "--json", ...args], {
    signal: stop.signal,
    onStdout: (chunk) => (printed += chunk.toString()),
  });
  cleanups.push(async () => {
    stop.abort();
    expect(await running).toMatchObject({ code: 0, stdout: printed });
  });
  await expect.poll(() => printed).toContain("\n");
  return { url: String(objects(printed)[0]?.["url"]) };
}

describe("over HTTP", () => {
  it("refuses hosts, origins, tokens, paths and bodies that are not for it", { tags: ["slow"] }, async () => {
    const token = (await runHere(directory.path, ["token", "create", "x", "--quiet"])).stdout.trim();
    const { url } = await serveHttp();
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const ask = async (headers: Record<string, string>, init: RequestInit = {}, path = url): Promise<number> => {
      const accept = "application/json, text/event-stream";
      const given = { authorization: `Bearer ${token}`, "content-type": "application/json", accept, ...headers };
      const response = await fetch(path, { method: "POST", body, ...init, headers: given });
      expect(await response.text()).not.toContain("rotate");
      return response.status;
    };
    expect(await ask({})).toBe(200);
    expect(await ask({ authorization: "" })).toBe(401);
    expect(await ask({ authorization: `Bearer ${token}x` })).toBe(401);
    expect(await ask({ authorization: `Basic ${token}` })).toBe(401);
    expect(await ask({ origin: "https://evil.example" })).toBe(403);
    expect(await ask({ origin: "null" })).toBe(403);
    expect(await ask({ "sec-fetch-site": "cross-site" })).toBe(403);
    expect(await ask({}, {}, url.replace("/mcp", "/other"))).toBe(404);
    for (const method of ["GET", "DELETE", "PUT", "OPTIONS"]) expect(await ask({}, { method, body: null })).toBe(405);
    expect(await ask({}, { body: "{broken" })).toBe(400);
    expect(
      await ask(
        {},
        { body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "x", params: { x: "x".repeat(2 ** 20) } }) },
      ),
    ).toBe(413);
    expect(await ask({ "content-type": "text/plain" })).toBe(415);
    expect(await rebound(url, token, body)).toMatch(/^HTTP\/1\.1 421 /);
    expect(await ask({})).toBe(200);
  });

  it("shuts out an address that guesses tokens, and serves who has one", async () => {
    const token = (await runHere(directory.path, ["token", "create", "x", "--quiet"])).stdout.trim();
    const { url } = await serveHttp();
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const ask = (shown: string): Promise<Response> => {
      const accept = "application/json, text/event-stream";
      const headers = { authorization: `Bearer ${shown}`, "content-type": "application/json", accept };
      return fetch(url, { method: "POST", body, headers });
    };
    const guess = `${token.slice(0, -43)}${"b".repeat(43)}`;
    const statuses = [];
    for (let index = 0; index < 11; index++) statuses.push((await ask(guess)).status);
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429]);
    expect(Number((await ask(guess)).headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await ask(token)).status).toBe(200);
  });
});

/** A request under another name, as after DNS rebinding; `fetch` does not send one. */
async function rebound(url: string, token: string, body: string): Promise<string> {
  const { connect } = await import("node:net");
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const head = `POST /mcp HTTP/1.1\r\nhost: evil.example\r\nauthorization: Bearer ${token}\r\n`;
  socket.end(`${head}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  let answer = "";
  for await (const chunk of socket) answer += String(chunk);
  return answer;
}

describe("over stdin and stdout", () => {
  const call = (id: number, name: string, args: Record<string, unknown> = {}): string =>
    `${JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args } })}\n`;

  it("answers what came before the end of the input, and writes nothing but the protocol", async () => {
    const stdin = [
      "{broken\n",
      "\n",
      '[1,2]\n{"jsonrpc":"2.0"}\n"text"\n',
      `${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" })}\n`,
      `${JSON.stringify({ jsonrpc: "2.0", id: 2, method: "no/such" })}\n`,
      call(3, "search_sessions", { query: "rotate" }),
      call(4, "nothing"),
      call(5, "search_sessions", { query: "x".repeat(2_000_000) }),
      call(6, "list_sessions"),
      "{half",
    ].join("");
    for (const extra of [[], ["--json"], ["--log-level", "debug"]]) {
      const { code, stdout } = await runHere(directory.path, ["mcp", ...extra], { stdin });
      expect(code).toBe(0);
      const answers = objects(stdout).toSorted((one, other) => Number(one["id"]) - Number(other["id"]));
      expect(answers.map(({ jsonrpc, id }) => [jsonrpc, id])).toEqual([1, 2, 3, 4, 5, 6].map((id) => ["2.0", id]));
      expect(answers[1]).toHaveProperty("error.code", -32_601);
      expect(JSON.stringify(answers[2])).toContain("rotate the keys");
      expect(answers[3]).toHaveProperty("error.code", -32_602);
      expect(JSON.stringify(answers[4])).toMatch(/Too big/);
      expect(answers[5]).toHaveProperty("result.structuredContent.sessions.0.key", key);
    }
  });

  it("ends with its client, however that one ends [MCP]", { tags: ["slow"] }, async () => {
    await Promise.all(
      (["stdin", "SIGTERM", "both"] as const).map(async (end) => {
        const child = start(directory.path, ["mcp"]);
        let output = "";
        child.stdout.on("data", (chunk) => (output += String(chunk)));
        child.stdin.on("error", () => {});
        const ended = new Promise((resolve) => child.on("close", resolve));
        child.stdin.write(call(1, "list_sessions"));
        await expect.poll(() => output).toContain("\n");
        if (end === "SIGTERM") child.kill("SIGTERM");
        else child.stdin.end();
        if (end === "both") {
          child.stdout.destroy();
          child.stderr.destroy();
        }
        expect(await ended).toBe(0);
        expect(objects(output)).toHaveLength(1);
      }),
    );
  });

  it("sees a store that is made while it runs, and one that takes the place of another", async () => {
    const path = join(directory.path, "sessions.db");
    const move = (from: string, to: string): void => {
      for (const end of ["", "-wal", "-shm"]) {
        rmSync(to + end, { force: true });
        try {
          renameSync(from + end, to + end);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
        }
      }
    };
    move(path, `${path}.kept`);
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [sourceCondition, binPath, "mcp"],
      cwd: directory.path,
      env: cleanEnvironment(directory.path),
      stderr: "pipe",
    });
    const client = new Client({ name: "test", version: "1" });
    await client.connect(transport);
    cleanups.push(() => client.close());
    expect(await textOf(client, "list_sessions")).toBe("[No sessions.]");
    move(`${path}.kept`, path);
    expect(await textOf(client, "list_sessions")).toContain("kafka");
    move(path, `${path}.kept`);
    expect(await textOf(client, "list_sessions")).toBe("[No sessions.]");
    await seed(directory.path, [{ key: "agent:main:cli:direct:tea", drafts: [user("green")] }]);
    expect(await textOf(client, "list_sessions")).toMatch(/^(?!.*kafka)[\s\S]*tea/);
  });

  // A store waits for a lock for seconds before it gives up.
  it.runIf(isLongRun)(
    "answers with the code of a store that is locked, and with the sessions when it is free",
    async () => {
      const path = join(directory.path, "locked.db");
      await seed(directory.path, [{ key, drafts: [user("rotate")] }], `sqlite:${path}`);
      const blocker = new DatabaseSync(path);
      blocker.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
      const child = start(directory.path, ["mcp", "--store", `sqlite:${path}`]);
      let [output, errors] = ["", ""];
      child.stdout.on("data", (chunk) => (output += String(chunk)));
      child.stderr.on("data", (chunk) => (errors += String(chunk)));
      const ended = new Promise((resolve) => child.on("close", resolve));
      child.stdin.write(call(1, "list_sessions"));
      await expect.poll(() => output).toContain("\n");
      expect(objects(output)[0]).toMatchObject({
        result: { isError: true, content: [{ text: expect.stringContaining("STORE_LOCKED") }] },
      });
      expect(errors).toContain("STORE_LOCKED");
      blocker.exec("ROLLBACK");
      blocker.close();
      child.stdin.end(call(2, "list_sessions"));
      expect(await ended).toBe(0);
      expect(output).toContain("kafka");
    },
  );

  it("keeps notes only where they are allowed, and makes the store with the first one", async () => {
    const home = temporaryDirectory();
    cleanups.push(() => home.remove());
    const note = call(1, "add_note", { topic: "kafka", text: "on Mondays" });
    const refused = await runHere(home.path, ["mcp", "--quiet"], { stdin: note });
    expect(objects(refused.stdout)[0]).toHaveProperty("error.code", -32_602);
    expect((await runHere(home.path, ["sessions", "--json", "--quiet"])).stdout).toContain('"count":0');
    const stored = await runHere(home.path, ["mcp", "--allow-notes", "--quiet"], { stdin: note });
    expect(stored.stdout).toContain("Stored under");
    const found = await runHere(home.path, ["search", "mondays", "--json", "--quiet"]);
    expect(objects(found.stdout)[0]).toMatchObject({ key: "agent:main:mcp:direct:notes" });
  });

  it("searches memory files of a workspace that is named, and of no other folder", async () => {
    const { writeFileSync } = await import("node:fs");
    writeFileSync(join(directory.path, "MEMORY.md"), "the gondola is green\n");
    const stdin = call(1, "read_memory", { query: "gondola" });
    const unnamed = await runHere(directory.path, ["mcp"], { stdin });
    expect(unnamed.stdout).toContain("[Nothing found.]");
    const named = await runHere(directory.path, ["mcp", "--workspace", directory.path], { stdin });
    expect(named.stdout).toContain(String.raw`file \"MEMORY.md\" lines 1 to 1\n  | the gondola is green`);
  });
});
