import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createServer } from "@throughline/server";
import type { TokenRights } from "@throughline/http-api/internal";
import type { Server } from "@throughline/server";
import { createSqliteStore } from "@throughline/store-sqlite";
import { assistant, objects, runChild, runHere, seed, temporaryDirectory, user } from "./harness.ts";
import type { Run } from "./harness.ts";
import { startTlsFront, type TlsFront } from "./tls-front.ts";

const everything: TokenRights = {
  namespace: "*",
  agents: "*",
  scopes: ["read", "write", "delete", "metrics", "admin"],
  expiresAtMs: null,
};
const limits = { requestsPerMinute: 1_000_000, requestBurst: 1_000_000 };

/** A home with sessions, and the same sessions behind a server. */
const local = temporaryDirectory();
const remote = temporaryDirectory();
let server: Server;
let front: TlsFront;
let token = "";
const knownAuthorities = getCACertificates("default");

beforeAll(async () => {
  for (const { path } of [local, remote]) {
    await seed(path, [
      {
        key: "notes",
        entry: { label: "Harbour", contextTokens: 1000, model: "model-1", modelProvider: "example" },
        drafts: [
          { id: "r1", timestamp: "2026-01-01T00:00:00.000Z", ...user("the harbour lights") },
          { id: "r2", timestamp: "2026-01-01T00:00:01.000Z", ...assistant("they are lit") },
          { id: "r3", timestamp: "2026-01-01T00:00:02.000Z", ...user("keep them lit") },
        ],
      },
      { key: "agent:main:cli:direct:other", drafts: [{ id: "o1", ...user("nothing here") }] },
      {
        key: "long",
        drafts: Array.from({ length: 20 }, (_, index) => [
          { id: `u${index}`, ...user(`Look after quay ${index}, and keep its lights on. `.repeat(8)) },
          { id: `a${index}`, ...assistant(`Quay ${index} is looked after. `.repeat(12)) },
        ]).flat(),
      },
      { key: "agent:work:plans", drafts: [{ id: "w1", ...user("work plan") }] },
    ]);
    writeFileSync(join(path, "drafts.jsonl"), `${JSON.stringify({ id: "n1", ...user("appended") })}\n`);
    const header = '{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/home/ada"}';
    const line =
      '{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"hi"}}';
    writeFileSync(join(path, "s1.jsonl"), `${header}\n${line}\n`);
  }
  const path = join(remote.path, "sessions.db");
  server = await createServer({ openStore: (onEvent) => createSqliteStore({ path, onEvent }), port: 0, limits });
  token = (await server.tokens.create(everything, "tests")).text;
  front = await startTlsFront(Number(new URL(server.url).port), remote.path);
  // What NODE_EXTRA_CA_CERTS does at the start of a process.
  setDefaultCACertificates([...knownAuthorities, readFileSync(front.authority, "utf8")]);
});
afterAll(async () => {
  setDefaultCACertificates(knownAuthorities);
  front.close();
  await server.close();
  local.remove();
  remote.remove();
});

function overHttp(args: readonly string[], stdin = "", secret = token, url = server.url): Promise<Run> {
  const environment = { THROUGHLINE_TOKEN: secret };
  return runHere(remote.path, [...args, "--store", url], { stdin, environment });
}

/** Ids that are made and times differ between two stores, and so do the names of the stores. */
function comparable(text: string): unknown {
  if (text === "") return [];
  const made = /"(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|\d{13}_[0-9a-f]{8}|id-[\w-]+)"/g;
  return objects(
    text
      .replaceAll(made, '"(id)"')
      .replaceAll(
        /"(\w*(?:AtMs|atMs|tsMs|timestamp|updatedAt|createdAt|elapsedMs|createdTime))":(?:\d+|"[^"]*")/g,
        '"$1":0',
      )
      .replaceAll(local.path, "(home)")
      .replaceAll(remote.path, "(home)"),
  ).map(({ store: _store, sizeBytes: _size, storeName: _name, nextCursor, searchLag: _lag, ...rest }) => ({
    ...rest,
    hasMore: nextCursor !== null,
  }));
}

interface Compared {
  readonly args: readonly string[];
  readonly stdin?: string;
}

const appended = `${JSON.stringify({ id: "n1", ...user("appended") })}\n`;

/** In order: each finds what the ones before it left. */
const commands: readonly Compared[] = [
  { args: ["sessions"] },
  { args: ["sessions", "--all-agents", "--sort", "key"] },
  { args: ["sessions", "--sort", "key", "--archived", "--limit", "1"] },
  { args: ["show", "notes"] },
  { args: ["show", "notes", "--tail", "1"] },
  { args: ["show", "notes", "--after-seq", "1", "--role", "user"] },
  { args: ["show", "notes", "--all-branches", "--raw"] },
  { args: ["show", "long", "--all"] },
  { args: ["show", "nobody"] },
  { args: ["context", "notes"] },
  { args: ["context", "notes", "--provider", "anthropic", "--window", "500"] },
  { args: ["context", "long", "--provider", "openai"] },
  { args: ["explain", "notes"] },
  { args: ["search", "harbour"] },
  { args: ["search", "quay", "--limit", "3"] },
  { args: ["search", "quay", "--session", "notes"] },
  { args: ["watch", "notes", "--after-seq", "0", "--limit", "2"] },
  { args: ["append", "notes"], stdin: appended },
  { args: ["append", "notes"], stdin: appended },
  { args: ["append", "notes", "--expect-head", "r1"], stdin: '{"type":"note","id":"x1"}\n' },
  { args: ["append", "fresh", "--batch", "2"], stdin: '{"type":"note","id":"f1"}\n{"type":"note","id":"f2"}\n' },
  { args: ["append", "fresh"], stdin: "{oops\n" },
  { args: ["import", "s1.jsonl"] },
  { args: ["import", "s1.jsonl"] },
  { args: ["export", "notes", "-o", "notes.jsonl"] },
  { args: ["export", "notes", "-o", "notes.jsonl"] },
  { args: ["handoff", "notes", "--to", "nothing"] },
  { args: ["secrets", "notes"] },
  { args: ["new", "Harbour", "plans"] },
  { args: ["rename", "agent:main:cli:direct:harbour-plans", "plans", "--label", "P"] },
  { args: ["fork", "notes", "--key", "agent:main:cli:direct:forked"] },
  { args: ["rewind", "notes", "--to", "r1"] },
  { args: ["redact", "fresh", "1", "--yes"] },
  { args: ["entry", "notes", "get", "label"] },
  { args: ["entry", "notes", "set", "sendPolicy", "deny"] },
  { args: ["entry", "notes", "unset", "sendPolicy"] },
  { args: ["policy", "notes"] },
  { args: ["compact", "long", "--dry-run", "--model", "offline"] },
  { args: ["compact", "long", "--model", "offline"] },
  { args: ["checkpoint", "long", "--model", "offline"] },
  { args: ["checkpoints", "long"] },
  { args: ["memory", "search", "harbour"] },
  { args: ["chat", "--key", "talk", "--once", "hello", "--model", "offline"] },
  { args: ["delete", "agent:main:cli:direct:forked", "--purge", "--yes"] },
  { args: ["delete", "plans"] },
  { args: ["restore", "--archive", "nothing"] },
  { args: ["prune", "--keep", "1", "--max-bytes", "100"] },
  { args: ["reset", "fresh"] },
  { args: ["verify"] },
  { args: ["doctor"] },
  { args: ["stats"] },
  { args: ["copy", "--all", "--to-store", "jsonl:copied"] },
];

describe("--store https://…", () => {
  it.each(commands)("gives for $args what the store itself gives", async ({ args, stdin = "" }) => {
    const [here, there] = [
      await runHere(local.path, [...args, "--json"], { stdin }),
      await overHttp([...args, "--json"], stdin, token, front.url),
    ];
    expect({ code: there.code, stdout: comparable(there.stdout) }).toEqual({
      code: here.code,
      stdout: comparable(here.stdout),
    });
    const codes = ({ stderr }: Run): readonly unknown[] =>
      (stderr === "" ? [] : objects(stderr)).filter(({ kind }) => kind === "error").map(({ code }) => code);
    expect(codes(there)).toEqual(codes(here));
    expect(there.stdout + there.stderr).not.toContain(token);
  });

  it("is tried with at least 40 commands", () => {
    expect(commands.length).toBeGreaterThanOrEqual(40);
  });

  it("takes the authority of NODE_EXTRA_CA_CERTS, and refuses one that nobody knows", { tags: ["slow"] }, async () => {
    const run = (environment: Readonly<Record<string, string>>): Promise<Run> =>
      runChild(remote.path, ["sessions", "--json", "--store", front.url], {
        environment: { THROUGHLINE_TOKEN: token, ...environment },
      });
    const known = await run({ NODE_EXTRA_CA_CERTS: front.authority });
    expect([known.code, objects(known.stdout).at(-1)?.["kind"]]).toEqual([0, "end"]);
    const unknown = await run({ NODE_EXTRA_CA_CERTS: "" });
    expect([unknown.code, objects(unknown.stderr).at(-1)]).toEqual([
      1,
      expect.objectContaining({ code: "STORE_UNREACHABLE", message: expect.stringContaining("certificate") }),
    ]);
    expect(unknown.stderr).not.toContain(token);
  });

  it("says for maintenance of files that the server's machine does it", async () => {
    for (const args of [["backup", "b.db"], ["restore-backup", "b.db"], ["reindex"]]) {
      const { code, stderr } = await overHttp([...args, "--yes", "--json"]);
      expect([args[0], code, objects(stderr).at(-1)?.["code"]]).toEqual([
        args[0],
        expect.toBeOneOf([1, 2]),
        expect.toBeOneOf(["CAPABILITY_UNSUPPORTED", "USAGE", "FILE_NOT_FOUND", "STORE_UNSUPPORTED"]),
      ]);
    }
  });

  it("copies into a server", async () => {
    const environment = { THROUGHLINE_TOKEN: token };
    const args = ["copy", "agent:work:plans", "--agent", "work", "--to-store", server.url, "--namespace", "", "--json"];
    const { code, stdout } = await runHere(local.path, args, { environment });
    expect([code, objects(stdout)[0]]).toMatchObject([0, { kind: "copy", state: expect.any(String) }]);
  });
});

describe("a server that refuses or is not there", () => {
  const failureOf = ({ code, stderr }: Run): readonly unknown[] => {
    const error = objects(stderr).at(-1);
    return [code, error?.["code"], error?.["remedy"]];
  };

  it("names what starts the server where none listens", { tags: ["slow"] }, async () => {
    const args = ["sessions", "--store", "http://127.0.0.1:1", "--json"];
    expect(failureOf(await runHere(remote.path, args))).toEqual([
      1,
      "STORE_UNREACHABLE",
      expect.stringMatching(/throughline serve --port 1\./),
    ]);
  });

  it.each(["", "nonsense", `tl_aaaaaaaaaaaa_${"s".repeat(43)}`])(
    "names what makes a token, for the token %j",
    async (secret) => {
      const run = await overHttp(["sessions", "--json"], "", secret);
      expect(failureOf(run)).toEqual([
        1,
        "UNAUTHENTICATED",
        expect.stringMatching(/token create NAME.*THROUGHLINE_TOKEN/),
      ]);
      expect(run.stdout + run.stderr).not.toContain("sssss");
    },
  );

  it("refuses a variable that no header takes, and does not print it", async () => {
    const run = await overHttp(["sessions", "--json"], "", "geheim\r\nx-evil: 1");
    expect(failureOf(run).slice(0, 2)).toEqual([1, "CONFIG_INVALID"]);
    expect(run.stderr).not.toContain("geheim");
  });

  it("names the scope that is missing, and a token with it may go on", async () => {
    const reader = await server.tokens.create({ ...everything, scopes: ["read"] }, "reader");
    const refused = await overHttp(["append", "notes", "--json"], '{"type":"note","id":"s1"}\n', reader.text);
    expect(failureOf(refused)).toEqual([1, "FORBIDDEN", expect.stringContaining("--scopes …,write")]);
    expect((await overHttp(["sessions", "--json"], "", reader.text)).code).toBe(0);
  });

  it(
    "ends with a typed error where the server ends in the middle, and may be repeated",
    { tags: ["slow"] },
    async () => {
      const home = temporaryDirectory();
      const path = join(home.path, "sessions.db");
      const open = (port: number): Promise<Server> =>
        createServer({ openStore: (onEvent) => createSqliteStore({ path, onEvent }), port, limits });
      let other = await open(0);
      const secret = (await other.tokens.create(everything, "tests")).text;
      const environment = { THROUGHLINE_TOKEN: secret };
      const args = ["append", "notes", "--store", other.url, "--json"];
      expect((await runHere(home.path, args, { environment, stdin: '{"type":"note","id":"k1"}\n' })).code).toBe(0);
      await other.close();
      const cut = await runHere(home.path, args, { environment, stdin: '{"type":"note","id":"k2"}\n' });
      expect(failureOf(cut).slice(0, 2)).toEqual([1, "STORE_UNREACHABLE"]);
      other = await open(Number(new URL(other.url).port));
      expect((await runHere(home.path, args, { environment, stdin: '{"type":"note","id":"k2"}\n' })).code).toBe(0);
      const shown = await runHere(home.path, ["show", "notes", "--all-branches", "--json", "--store", other.url], {
        environment,
      });
      expect(objects(shown.stdout).map(({ id }) => id)).toEqual(["k1", "k2", undefined]);
      await other.close();
      home.remove();
    },
  );
});

describe("the token of server.json", () => {
  const leave = (url: string): void =>
    writeFileSync(join(remote.path, "server.json"), JSON.stringify({ url, token, pid: process.pid }), { mode: 0o600 });

  it("goes to the server that wrote it, under each of its names, and to no other", async () => {
    leave(server.url);
    const port = new URL(server.url).port;
    for (const host of ["127.0.0.1", "localhost"])
      expect((await runHere(remote.path, ["sessions", "--json", "--store", `http://${host}:${port}`])).code).toBe(0);
    leave("http://127.0.0.1:1");
    const { code, stderr } = await runHere(remote.path, ["sessions", "--json", "--store", server.url]);
    expect([code, objects(stderr).at(-1)?.["code"]]).toEqual([1, "UNAUTHENTICATED"]);
    expect(readFileSync(join(remote.path, "server.json"), "utf8")).toContain(token);
  });

  it("makes and revokes tokens over HTTP", async () => {
    leave(server.url);
    const made = await runHere(remote.path, ["token", "create", "far", "--scopes", "read", "--store", server.url]);
    const far = made.stdout.trim();
    expect(far).toMatch(/^tl_[a-z2-7]{12}_[\w-]{43}$/);
    expect((await overHttp(["sessions", "--json"], "", far)).code).toBe(0);
    const listed = objects((await runHere(remote.path, ["token", "--json", "--store", server.url])).stdout);
    const { id } = listed.find(({ label }) => label === "far") ?? {};
    expect(JSON.stringify(listed)).not.toContain(far.slice(-43));
    expect((await runHere(remote.path, ["token", "revoke", String(id), "--store", server.url])).code).toBe(0);
    expect((await overHttp(["sessions", "--json"], "", far)).code).toBe(1);
  });
});

describe("import with a token of one namespace", () => {
  const tenant = (more: Partial<TokenRights> = {}): Promise<string> =>
    server.tokens
      .create({ ...everything, namespace: "tenant", scopes: ["read", "write"], ...more }, "tenant")
      .then(({ text }) => text);
  const args = ["import", "s1.jsonl", "--namespace", "tenant", "--json"];

  it("knows what was imported, also after a purge", async () => {
    const secret = await tenant();
    const first = await overHttp(args, "", secret);
    expect([first.code, objects(first.stdout)[0]]).toMatchObject([0, { sources: [{ state: "imported" }] }]);
    const { sources } = objects(first.stdout)[0] as { readonly sources: readonly { readonly key: string }[] };
    const remover = await tenant({ scopes: ["read", "write", "delete"] });
    const removed = await overHttp(
      ["delete", sources[0]?.key ?? "", "--purge", "--yes", "--namespace", "tenant"],
      "",
      remover,
    );
    expect(removed.code).toBe(0);
    // The mark of the purge outlives the session.
    const again = await overHttp(args, "", secret);
    expect(objects(again.stdout)[0]).toMatchObject({ sources: [{ state: "skipped" }] });
  });

  it("reaches nothing else beside its namespace", async () => {
    const secret = await tenant();
    const ask = async (path: string, namespace: string, init: RequestInit = {}): Promise<number> => {
      const headers = {
        authorization: `Bearer ${secret}`,
        "throughline-namespace": namespace,
        "content-type": "application/json",
      };
      return (await fetch(`${server.url}/api/v1${path}`, { ...init, headers })).status;
    };
    expect(await ask("/sessions", "tenant")).toBe(200);
    for (const namespace of ["", "other", "tenant.imports"]) expect(await ask("/sessions", namespace)).toBe(403);
  });

  it("of some agents imports too", async () => {
    const secret = await tenant({ agents: ["main"] });
    const run = await overHttp([...args, "--key", "agent:main:cli:direct:mine"], "", secret);
    expect([run.code, objects(run.stdout)[0]]).toMatchObject([0, { sources: [{ state: "imported" }] }]);
  });
});
