import type { ChildProcessWithoutNullStreams } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { writePage } from "../../server/test/page-folder.ts";
import { binPath, objects, runChild, type RunOptions, seed, start, temporaryDirectory, user } from "./harness.ts";
import { runInTerminal } from "./terminal.ts";

/** Where the installed command line has its page. */
const page = join(dirname(binPath), "../dist/inspect");
beforeAll(() => void writePage(page));

let directory = temporaryDirectory();
let running: { readonly child: ChildProcessWithoutNullStreams; readonly ended: Promise<number | null> }[] = [];
beforeEach(async () => {
  directory = temporaryDirectory();
  running = [];
  await seed(directory.path, [{ key: "agent:main:cli:direct:notes", drafts: [user("read the tides"), user("again")] }]);
});
afterEach(async () => {
  for (const { child, ended } of running) {
    child.kill("SIGKILL");
    await ended;
  }
  directory.remove();
});

interface Started {
  readonly child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<number | null>;
  readonly line: string;
  readonly stderr: () => string;
}

/** Starts a command, and waits for its first line, or its end. */
async function begin(args: readonly string[], options: RunOptions = {}): Promise<Started> {
  const child = start(directory.path, args, options);
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.on("data", (chunk) => (stderr += chunk));
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  running.push({ child, ended });
  void ended.then(() => (stdout += "\n"));
  await expect.poll(() => stdout).toContain("\n");
  return { child, ended, line: stdout.split("\n")[0] ?? "", stderr: () => stderr };
}

function partsOf(line: string): { readonly origin: string; readonly path: string; readonly token: string } {
  const { origin, pathname, search, hash } = new URL(line);
  return { origin, path: pathname + search, token: hash.replace("#token=", "") };
}

const ask = (origin: string, path: string, token: string, method = "GET"): Promise<Response> =>
  fetch(`${origin}${path}`, { method, headers: { authorization: `Bearer ${token}` } });

/** Every record and entry that is stored. Derived tables are left out. */
function contents(): string {
  using database = new DatabaseSync(join(directory.path, "sessions.db"), { readOnly: true });
  const tables = ["store_sessions", "store_entries", "store_records", "store_partials", "store_files"];
  return JSON.stringify(tables.map((name) => database.prepare(`SELECT * FROM ${name}`).all()));
}

describe("ui without a server", () => {
  it("serves the page beside itself with a token in memory, and changes nothing", async () => {
    const before = contents();
    const { child, ended, line, stderr } = await begin(["ui", "notes", "--at", "2", "--no-open", "--no-sync"]);
    const { origin, path, token } = partsOf(line);
    const key = Buffer.from("agent:main:cli:direct:notes").toString("base64url");
    expect([new URL(line).hostname, path]).toEqual(["127.0.0.1", `/inspect/s/~${key}?at=2`]);
    expect((await fetch(`${origin}${path}`)).status).toBe(200);
    const records = await ask(origin, `/api/v1/sessions/~${key}/records`, token);
    expect([records.status, await records.text()]).toEqual([200, expect.stringContaining("read the tides")]);
    expect((await ask(origin, "/api/v1/search?q=tides", token)).status).toBe(200);
    expect((await ask(origin, "/api/v1/admin/tokens", token)).status).toBe(403);
    expect((await ask(origin, `/api/v1/sessions/~${key}`, token, "DELETE")).status).toBe(403);
    expect((await ask(origin, "/api/v1/sessions?agent=other", token)).ok).toBe(false);
    expect((await ask(origin, "/api/v1/sessions", "")).status).toBe(401);
    expect(existsSync(join(directory.path, "server.json"))).toBe(false);
    child.kill("SIGINT");
    expect(await ended).toBe(0);
    expect(stderr()).not.toContain(token);
    expect(contents()).toBe(before);
  });

  it("prints the address as JSON, and reaches all agents when asked", async () => {
    await seed(directory.path, []);
    const { line } = await begin(["ui", "--all-agents", "--json"]);
    const printed = JSON.parse(line) as { readonly url: string };
    expect(printed).toMatchObject({ kind: "page", pid: expect.any(Number), expiresAtMs: null });
    const { origin, path, token } = partsOf(printed.url);
    expect(path).toBe("/inspect/");
    expect((await ask(origin, "/api/v1/sessions?agent=other", token)).status).toBe(200);
  });

  it("makes a missing store, so that an import can fill it", async () => {
    rmSync(join(directory.path, "sessions.db"));
    const { line } = await begin(["ui", "--no-open"]);
    const { origin, token } = partsOf(line);
    expect(await (await ask(origin, "/api/v1/sessions", token)).json()).toMatchObject({ items: [] });
  });

  it("names what it does not find", async () => {
    expect(await runChild(directory.path, ["ui", "nothing"])).toMatchObject({ code: 1, stdout: "" });
    expect(await runChild(directory.path, ["ui", "notes", "--at", "99"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("no record #99: its records are #1 to #2"),
    });
    expect(await runChild(directory.path, ["ui", "--at", "1"])).toMatchObject({ code: 2 });
  });

  it("does not mind what a killed server left, nor who has its port now", async () => {
    const asked: (string | undefined)[] = [];
    const squatter = createServer((request, response) => {
      asked.push(request.headers.authorization);
      response.end("<!doctype html><title>mine</title>");
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => squatter.once("listening", resolve));
    const url = `http://127.0.0.1:${(squatter.address() as AddressInfo).port}`;
    // The number of a process that lives, and one that does not.
    for (const pid of [process.pid, 2 ** 22 - 3]) {
      const path = join(directory.path, "server.json");
      writeFileSync(path, JSON.stringify({ url, token: "tl_secret", pid }), { mode: 0o600 });
      const { line, child, ended } = await begin(["ui", "--no-open"]);
      expect(partsOf(line).origin).not.toBe(url);
      expect((await fetch(`${partsOf(line).origin}/inspect/`)).status).toBe(200);
      child.kill("SIGTERM");
      expect(await ended).toBe(0);
      expect(existsSync(path)).toBe(true);
    }
    squatter.close();
    expect(asked).toEqual([undefined]);
  });

  it("ends with the streams that are open", async () => {
    const { child, ended, line } = await begin(["ui", "--no-open"]);
    const { origin, token } = partsOf(line);
    const key = Buffer.from("agent:main:cli:direct:notes").toString("base64url");
    const text = (await ask(origin, `/api/v1/sessions/~${key}/events`, token)).text();
    child.kill("SIGINT");
    expect(await ended).toBe(0);
    expect(await text).toContain("event: bye");
  });
});

describe("ui beside a server", () => {
  const serve = async (...args: readonly string[]): Promise<Started> =>
    begin(["serve", "--port", "0", "--json", ...args]);
  const urlOf = ({ line }: Started): string => (JSON.parse(line) as { readonly url: string }).url;

  it("makes a token that reads and ends, opens the page there, and leaves the server running", async () => {
    const server = await serve();
    const before = readFileSync(join(directory.path, "server.json"), "utf8");
    const { code, stdout } = await runChild(directory.path, ["ui", "notes", "--json"]);
    const printed = objects(stdout)[0] as { readonly url: string; readonly expiresAtMs: number };
    const { origin, token } = partsOf(printed.url);
    expect([code, origin, printed]).toEqual([0, urlOf(server), expect.objectContaining({ kind: "page", pid: null })]);
    expect(Math.abs(printed.expiresAtMs - Date.now() - 12 * 3_600_000)).toBeLessThan(60_000);
    expect((await ask(origin, "/api/v1/sessions", token)).status).toBe(200);
    expect((await ask(origin, "/api/v1/sessions/x", token, "PUT")).status).toBe(403);
    expect(readFileSync(join(directory.path, "server.json"), "utf8")).toBe(before);
    expect(server.child.exitCode).toBeNull();
  });

  it("serves beside when the server has another store, or no page", async () => {
    const server = await serve("--store", `sqlite:${join(directory.path, "other.db")}`);
    const { line } = await begin(["ui", "--no-open"]);
    expect(partsOf(line).origin).not.toBe(urlOf(server));
    const aside = `${page}-aside`;
    server.child.kill("SIGTERM");
    await server.ended;
    renameSync(page, aside);
    try {
      const without = await serve();
      renameSync(aside, page);
      const { line: second } = await begin(["ui", "--no-open"]);
      expect(partsOf(second).origin).not.toBe(urlOf(without));
      const remote = await runChild(directory.path, ["ui", "--store", urlOf(without)]);
      expect(remote).toMatchObject({ code: 1, stderr: expect.stringContaining("does not have the page") });
    } finally {
      if (existsSync(aside)) renameSync(aside, page);
    }
  });

  it("hands over a token that may not make others, and opens without one", async () => {
    const server = await serve();
    const url = urlOf(server);
    const made = await runChild(directory.path, ["token", "create", "reader", "--scopes", "read"]);
    const reader = made.stdout.trim();
    const elsewhere = join(directory.path, "elsewhere");
    mkdirSync(elsewhere);
    const handed = await runChild(elsewhere, ["ui", "--no-open", "--store", url], {
      environment: { THROUGHLINE_TOKEN: reader },
    });
    expect([handed.code, partsOf(handed.stdout.trim()).token]).toEqual([0, reader]);
    expect(handed.stderr).toContain("scope admin");
    const none = await runChild(elsewhere, ["ui", "--no-open", "--store", url]);
    expect([none.code, none.stdout.trim()]).toEqual([0, `${url}/inspect/`]);
    const away = await runChild(elsewhere, ["ui", "--no-open", "--store", "http://127.0.0.1:9"]);
    expect(away).toMatchObject({ code: 1, stderr: expect.stringContaining("does not answer") });
  });

  it("prints links without a token", async () => {
    const key = Buffer.from("agent:main:cli:direct:notes").toString("base64url");
    const without = await runChild(directory.path, ["show", "notes", "--at", "2", "--link"]);
    expect(without).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("ui agent:main:cli:direct:notes --at 2"),
    });
    const url = urlOf(await serve());
    const { stdout } = await runChild(directory.path, ["show", "notes", "--at", "2", "--link"]);
    expect(stdout).toBe(`${url}/inspect/s/~${key}?at=2\n`);
    const asJson = await runChild(directory.path, ["show", "notes", "--link", "--json"]);
    expect(objects(asJson.stdout)[0]).toMatchObject({ kind: "link", seq: null, url: `${url}/inspect/s/~${key}` });
    expect(await runChild(directory.path, ["show", "notes", "--at", "9", "--link"])).toMatchObject({ code: 1 });
  });
});

describe("the browser", () => {
  /** A desktop whose opener keeps its arguments and what the named file holds. */
  const desktop = (body: string): Readonly<Record<string, string>> => {
    const bin = join(directory.path, "bin");
    mkdirSync(bin, { recursive: true });
    const opener = join(bin, "xdg-open");
    writeFileSync(opener, `#!/bin/sh\n${body}\n`);
    chmodSync(opener, 0o755);
    return {
      PATH: [bin, "/usr/bin", "/bin"].join(delimiter),
      DISPLAY: ":0",
      WAYLAND_DISPLAY: "",
      TMPDIR: directory.path,
      THROUGHLINE_TOKEN: "",
    };
  };
  const folders = (): readonly string[] =>
    readdirSync(directory.path).filter((name) => /^throughline-\w{6}$/.test(name));

  it("gets the address by a file that only its user reads: no argument has the token", async () => {
    const seen = join(directory.path, "seen");
    const environment = desktop(
      `echo "$@" > ${seen}.args; cp "$1" ${seen}.html; stat -c %a "$1" "$(dirname "$1")" > ${seen}.modes`,
    );
    const { child, ended, line } = await begin(["ui"], { environment });
    await expect.poll(() => existsSync(`${seen}.modes`) && readFileSync(`${seen}.modes`, "utf8")).toBe("600\n700\n");
    const { token } = partsOf(line);
    expect(readFileSync(`${seen}.args`, "utf8")).toMatch(/^\S+open\.html\n$/);
    const html = readFileSync(`${seen}.html`, "utf8");
    expect(html).toContain(`content="0;url=${line}"`);
    expect(html).toContain(token);
    expect(folders()).toHaveLength(1);
    child.kill("SIGINT");
    expect(await ended).toBe(0);
    expect(folders()).toEqual([]);
  });

  it.each([
    ["fails", "exit 3"],
    ["is missing", null],
    ["has no desktop", "exit 0"],
  ])("%s: the address is printed, and the page is served", async (what, body) => {
    const environment = { ...desktop(body ?? "exit 0"), ...(what === "has no desktop" ? { DISPLAY: "" } : {}) };
    if (body === null) rmSync(join(directory.path, "bin/xdg-open"));
    const { line, stderr } = await begin(["ui"], { environment });
    if (body === null && existsSync("/usr/bin/xdg-open")) return;
    await expect.poll(stderr).toContain("Open the address in a browser.");
    expect((await fetch(`${partsOf(line).origin}/inspect/`)).status).toBe(200);
    expect(folders()).toEqual([]);
  });

  it("is left alone where JSON is asked for", async () => {
    const seen = join(directory.path, "seen");
    await begin(["ui", "--json"], { environment: desktop(`touch ${seen}`) });
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(existsSync(seen)).toBe(false);
  });
});

describe("the first time", () => {
  const line = (at: number, text: string): string =>
    `${JSON.stringify({
      type: "user",
      uuid: `0b0e1b5e-0000-4000-8000-${String(at).padStart(12, "0")}`,
      parentUuid: null,
      sessionId: "0b0e1b5e-1111-4000-8000-000000000001",
      cwd: "/srv/app",
      version: "2.0.0",
      timestamp: "2026-01-02T03:04:05.000Z",
      message: { role: "user", content: text },
    })}\n`;

  it("asks whether to import, serves at once, and shows what the programs wrote and write", async () => {
    rmSync(join(directory.path, "sessions.db"));
    const folder = join(directory.path, ".claude/projects/-srv-app");
    mkdirSync(folder, { recursive: true });
    const file = join(folder, "0b0e1b5e-1111-4000-8000-000000000001.jsonl");
    writeFileSync(file, line(1, "where are the lamps?"));
    await using terminal = runInTerminal(directory.path, ["ui", "--no-open"], { columns: 200 });
    await terminal.waitFor(/Claude Code 1 session.*Import them\?/);
    terminal.write("y\r");
    await terminal.waitFor("The page shows");
    const { origin, token } = partsOf(/http:\S+/.exec(terminal.text())?.[0] ?? "");
    const records = async (): Promise<number> => {
      const answer = await ask(origin, "/api/v1/sessions", token);
      const { items } = (await answer.json()) as { readonly items: readonly { readonly messageCount: number }[] };
      return items.reduce((sum, { messageCount }) => sum + messageCount, 0);
    };
    await expect.poll(records).toBe(1);
    appendFileSync(file, line(2, "and the tides?"));
    await expect.poll(records).toBe(2);
    terminal.write("\u0003");
    expect(await terminal.exitCode()).toBe(0);
  });
});
