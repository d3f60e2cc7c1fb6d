import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { binPath, cleanEnvironment, objects, runChild, sourceCondition, start, temporaryDirectory } from "./harness.ts";

let directory = temporaryDirectory();
const children: ChildProcess[] = [];
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill("SIGKILL");
    await once(child, "close");
  }
  directory.remove();
});

const environment = { THROUGHLINE_HOME: "" };
beforeEach(() => {
  environment.THROUGHLINE_HOME = join(directory.path, "home");
});

function idOf(at: number): string {
  return `0b0e1b5e-0000-4000-8000-${String(at).padStart(12, "0")}`;
}

function line(session: number, at: number, text: string): string {
  const uuid = `0b0e1b5e-${String(session).padStart(4, "0")}-4000-9000-${String(at).padStart(12, "0")}`;
  const fields = { parentUuid: null, isSidechain: false, userType: "external", cwd: "/srv", sessionId: idOf(session) };
  const message = { role: "user", content: text };
  return `${JSON.stringify({ ...fields, version: "2.0.0", type: "user", message, uuid, timestamp: "2026-01-01T00:00:00.000Z" })}\n`;
}

function write(sessions: number, lines: number): void {
  const folder = join(directory.path, ".claude", "projects", "-srv");
  mkdirSync(folder, { recursive: true });
  for (let session = 0; session < sessions; session++) {
    const text = Array.from({ length: lines }, (_, at) => line(session, at, `words ${session} ${at}`)).join("");
    writeFileSync(join(folder, `${idOf(session)}.jsonl`), text);
  }
}

function pathOf(session: number): string {
  return join(directory.path, ".claude", "projects", "-srv", `${idOf(session)}.jsonl`);
}

function begin(args: readonly string[]): { readonly child: ChildProcess; readonly text: () => string } {
  const child = start(directory.path, args, { environment });
  children.push(child);
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (text += chunk.toString()));
  return { child, text: () => text };
}

async function until(isDone: () => boolean | Promise<boolean>, what: string, ms: number = 30_000): Promise<number> {
  const beganMs = performance.now();
  while (!(await isDone())) {
    if (performance.now() - beganMs > ms) throw new Error(`${what} did not happen`);
    await wait(50);
  }
  return performance.now() - beganMs;
}

async function totals(args: readonly string[] = []): Promise<Record<string, number>> {
  const { stdout, stderr, code } = await runChild(directory.path, ["sync", "--json", ...args], { environment });
  if (code !== 0) throw new Error(stderr);
  return objects(stdout)[0]?.["totals"] as Record<string, number>;
}

/** Lists every session with its number of records. */
async function stored(): Promise<readonly string[]> {
  const { stdout } = await runChild(directory.path, ["sessions", "--json", "--limit", "1000"], { environment });
  const rows = objects(stdout).filter(({ kind }) => kind === "session");
  return rows.map(({ sessionId, recordCount }) => `${String(sessionId)} ${String(recordCount)}`).toSorted();
}

describe("a sync that is killed", () => {
  it("at 20 moments loses nothing and doubles nothing", { timeout: 600_000 }, async () => {
    write(60, 40);
    let struck = 0;
    let lines = 40;
    // A sync that has ended before its kill proves nothing, and each further sync has a line of every session to read.
    for (let kill = 0; kill < 100 && (kill < 20 || struck <= 5); kill++, lines++) {
      for (let session = 0; session < 60; session++)
        appendFileSync(pathOf(session), line(session, lines, `words ${session} ${lines}`));
      const { child } = begin(["sync"]);
      await wait(150 + Math.random() ** 2 * 1500);
      if (child.exitCode === null) struck += 1;
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "close");
    }
    await totals();
    expect(struck).toBeGreaterThan(5);
    const expected = Array.from({ length: 60 }, (_, at) => `${idOf(at)} ${lines}`);
    expect(await stored()).toEqual(expected.toSorted());
    expect(await totals()).toMatchObject({ sources: 60, imported: 0, grown: 0 });
  });
});

describe("two syncs at once", () => {
  it("import everything once", { timeout: 120_000 }, async () => {
    write(40, 20);
    const both = await Promise.all([totals(), totals()]);
    expect(both.map(({ refused }) => refused)).toEqual([0, 0]);
    expect(both.reduce((sum, each) => sum + (each["imported"] ?? 0), 0)).toBe(40);
    expect(await stored()).toEqual(Array.from({ length: 40 }, (_, at) => `${idOf(at)} 20`).toSorted());
  });

  it("one waits while the other watches, and takes over when that one is killed", { timeout: 120_000 }, async () => {
    write(2, 2);
    const first = begin(["sync", "--watch"]);
    await until(() => first.text().includes("Watching"), "the first watch");
    const second = begin(["sync", "--watch"]);
    await until(() => second.text().includes("takes over"), "the second wait");
    expect(second.text()).not.toContain("Watching");
    const once = await runChild(directory.path, ["sync"], { environment });
    expect([once.code, once.stderr]).toEqual([0, expect.stringContaining("Another process syncs this store")]);
    first.child.kill("SIGKILL");
    await until(() => second.text().includes("Watching"), "the second watch");
    appendFileSync(pathOf(1), line(1, 2, "zebra"));
    await until(() => second.text().includes("1 grown"), "the growth");
  });
});

describe("an MCP server", () => {
  const connect = async (...args: readonly string[]): Promise<Client> => {
    const client = new Client({ name: "test", version: "1.0.0" });
    const env = cleanEnvironment(directory.path, environment);
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args: [sourceCondition, binPath, "mcp", ...args], env }),
    );
    return client;
  };
  const found = async (client: Client, query: string): Promise<boolean> => {
    const { content } = await client.callTool({ name: "search_sessions", arguments: { query } });
    return JSON.stringify(content).includes(query) && JSON.stringify(content).includes("words about");
  };

  it("finds a line within seconds of its writing, once the user has agreed", { timeout: 120_000 }, async () => {
    write(3, 2);
    const before = await connect();
    await wait(1500);
    expect((await runChild(directory.path, ["sessions", "--json"], { environment })).stdout).not.toContain(idOf(0));
    await before.close();
    await totals();
    const client = await connect();
    const without = await connect("--no-sync");
    try {
      await found(client, "nothing");
      await wait(1500);
      appendFileSync(pathOf(1), line(1, 2, "words about zanzibar"));
      const ms = await until(() => found(client, "zanzibar"), "the line over MCP");
      // The promise is three seconds on a machine with nothing else to do.
      expect(ms).toBeLessThan(15_000);
      // The other process reads the same store.
      expect(await found(without, "zanzibar")).toBe(true);
      const { stdout } = await runChild(directory.path, ["search", "zanzibar", "--json"], { environment });
      expect(objects(stdout)[0]).toMatchObject({ kind: "hit" });
    } finally {
      await client.close();
      await without.close();
    }
  });
});
