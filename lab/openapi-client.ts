// A client that openapi-typescript generates from docs/openapi.json: it compiles with a call of every route that has a body, and
// each call succeeds against a running server. The packages are installed into a folder of their own.
// node --conditions=@throughline/source lab/openapi-client.ts [folder that keeps the packages]
import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { createServer } from "../apps/server/src/index.ts";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";
import { repositoryRoot } from "../tools/find-files.ts";
import { skippedPrefix } from "../tools/long-suite.ts";
import { installPeers } from "./peer-packages.ts";

const run = promisify(execFile);
const packages = {
  "@types/node": "24.19.2",
  "openapi-fetch": "0.17.0",
  "openapi-typescript": "7.13.0",
  typescript: "5.9.3",
};
const documentPath = join(repositoryRoot, "docs/openapi.json");

interface Call {
  readonly method: "PUT" | "PATCH" | "POST" | "DELETE";
  /** Below `/api/v1`. */
  readonly path: string;
  readonly params?: { readonly path?: object; readonly query?: object; readonly header?: object };
  readonly body?: unknown;
  /** Of the body. @default JSON */
  readonly type?: "application/x-ndjson" | "application/merge-patch+json";
}

const user = (content: string): object => ({ role: "user", content });
const record = (id: string): object => ({ type: "message", id, message: user(`harbor ${id}`) });
const home = { path: { session: "home" } };
const fenced = { path: { session: "home", fence: "1" } };
const turn = { v: 1, sessionId: "s-home", turnId: "t-1", fence: 1, step: 1, attempt: 0, afterSeq: 1 };
const partial = { ...turn, provider: null, api: null, model: null, text: "so far", updatedMs: 1 };
const overflow = { status: 400, body: { error: { message: "prompt is too long" } } };

/** In an order in which each succeeds. */
const calls: readonly Call[] = [
  { method: "PUT", path: "/sessions/{session}", params: home, body: { sessionId: "s-home", entry: { label: "Home" } } },
  {
    method: "PUT",
    path: "/sessions/{session}/entry",
    params: { path: { session: "other" }, header: { "if-none-match": "*" } },
    body: { sessionId: "s-other" },
  },
  { method: "PATCH", path: "/sessions/{session}/entry", params: home, body: { label: "Renamed" } },
  {
    method: "PATCH",
    path: "/sessions/{session}/entry",
    params: home,
    body: { label: null },
    type: "application/merge-patch+json",
  },
  {
    method: "POST",
    path: "/sessions/{session}/records",
    params: { ...home, header: { "idempotency-key": "first" } },
    body: { drafts: [record("r1")], expect: { head: null }, durability: "disk" },
  },
  {
    method: "POST",
    path: "/sessions/{session}/records",
    params: { ...home, query: { windowFromSeq: 1 } },
    body: `${JSON.stringify(record("r2"))}\n`,
    type: "application/x-ndjson",
  },
  {
    method: "POST",
    path: "/sessions/{session}/messages",
    params: { ...home, query: { api: "openai" } },
    body: { messages: [user("Hello")] },
  },
  {
    method: "POST",
    path: "/sessions/{session}/turns",
    params: home,
    body: { owner: "client", turnId: "t-1", leaseMs: 60_000, whenBusy: "reject" },
  },
  { method: "POST", path: "/sessions/{session}/turns/{fence}/renew", params: fenced, body: { leaseMs: 60_000 } },
  { method: "PUT", path: "/sessions/{session}/partial", params: home, body: partial },
  {
    method: "POST",
    path: "/sessions/{session}/turns/{fence}/close",
    params: fenced,
    body: { outcome: "done", drafts: [record("r3")] },
  },
  { method: "POST", path: "/sessions/{session}/checkpoint", params: home, body: { dryRun: true, window: 8192 } },
  { method: "POST", path: "/sessions/{session}/compact", params: home, body: { dryRun: true } },
  { method: "POST", path: "/diagnose", params: { query: { provider: "anthropic" } }, body: overflow },
  { method: "POST", path: "/search", body: { q: "harbor", state: "any", limit: 5 } },
  { method: "POST", path: "/sessions/{session}/sharers", params: home, body: { seqs: [1] } },
  { method: "POST", path: "/sessions/{session}/fork", params: home, body: { key: "copy", sessionId: "s-copy" } },
  {
    method: "POST",
    path: "/sessions/{session}/rename",
    params: { path: { session: "copy" } },
    body: { key: "renamed", sessionId: "s-copy" },
  },
  { method: "DELETE", path: "/sessions/{session}", params: { path: { session: "renamed" } } },
  {
    method: "POST",
    path: "/sessions/{session}/restore",
    params: { path: { session: "renamed" }, query: { archive: "s-copy" } },
    body: {},
  },
  { method: "POST", path: "/sessions/{session}/rewind", params: home, body: { to: "r2" } },
  { method: "POST", path: "/sessions/{session}/redact", params: home, body: { ids: ["r1"], reason: "test" } },
  { method: "POST", path: "/sessions/{session}/reset", params: home, body: { sessionId: "s-new", bare: true } },
  { method: "POST", path: "/admin/tokens", body: { scopes: ["read"], label: "made by a client" } },
];

/** The operations of the document that take a body, each with a type of it. */
function operationsWithBody(): readonly string[] {
  type Operation = { readonly requestBody?: { readonly content: object } };
  const { paths } = JSON.parse(readFileSync(documentPath, "utf8")) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  };
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { requestBody }]) =>
      Object.keys(requestBody?.content ?? {}).map((type) => `${method.toUpperCase()} ${path} ${type}`),
    ),
  );
}

/** A program that makes the calls with the generated types and prints each with its status. */
function program(): string {
  const made = calls.map(({ method, path, params, body, type }) => {
    const fields = [
      ...(params === undefined ? [] : [`params: ${JSON.stringify(params)}`]),
      ...(body === undefined ? [] : [`body: ${JSON.stringify(body)}`]),
      ...(type === undefined ? [] : [`headers: { "content-type": ${JSON.stringify(type)} }`]),
      ...(typeof body === "string" ? ["bodySerializer: (text) => String(text)"] : []),
    ];
    const line = `${method} /api/v1${path} ${body === undefined ? "" : (type ?? "application/json")}`.trim();
    return `print(${JSON.stringify(line)}, await client.${method}("/api/v1${path}", { ${fields.join(", ")} }));`;
  });
  return `import createClient from "openapi-fetch";
import type { paths } from "./throughline.d.ts";
type Json = "application/json" | "application/problem+json";
const [baseUrl = "", token = ""] = process.argv.slice(2);
const client = createClient<paths, Json>({ baseUrl, headers: { authorization: \`Bearer \${token}\` } });
function print(call: string, { response, error }: { response: Response; error?: { code: string } }): void {
  console.log(JSON.stringify({ call, status: response.status, code: error?.code ?? null }));
}
${made.join("\n")}
`;
}

async function calledOperations(folder: string): Promise<readonly string[]> {
  const stored = createSqliteStore({ path: join(folder, "sessions.db") });
  const server = await createServer({ openStore: () => stored, port: 0, log: { write: () => undefined } });
  try {
    const scopes = ["read", "write", "delete", "admin"] as const;
    const rights = { namespace: "", agents: "*", scopes, expiresAtMs: null } as const;
    const { text } = await server.tokens.create(rights, "client");
    const { stdout } = await run(process.execPath, [join(folder, "calls.ts"), server.url, text], { cwd: folder });
    return stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { readonly call: string; readonly status: number; readonly code: string })
      .map(({ call, status, code }) => (status < 300 ? call : `${call}: ${status} ${code}`));
  } finally {
    await server.close();
  }
}

const [given] = process.argv.slice(2);
const folder = given ?? mkdtempSync(join(tmpdir(), "throughline-openapi-"));
try {
  if (installPeers(folder, packages, [])) {
    const bin = (name: string): string => join(folder, "node_modules/.bin", name);
    rmSync(join(folder, "sessions.db"), { force: true });
    await run(bin("openapi-typescript"), [documentPath, "-o", join(folder, "throughline.d.ts")], { cwd: folder });
    writeFileSync(join(folder, "calls.ts"), program());
    const options = [
      "--noEmit",
      "--strict",
      "--module",
      "nodenext",
      "--target",
      "es2024",
      "--allowImportingTsExtensions",
    ];
    const { status } = spawnSync(bin("tsc"), [...options, "calls.ts"], { cwd: folder, stdio: "inherit" });
    const called = status === 0 ? await calledOperations(folder) : [];
    const wanted = operationsWithBody();
    const missing = wanted.filter((operation) => !called.includes(operation));
    const failed = called.filter((call) => call.includes(": "));
    for (const call of [...failed, ...missing.map((operation) => `no call succeeded: ${operation}`)])
      process.stdout.write(`${call}\n`);
    process.stdout.write(
      `${wanted.length - missing.length} of ${wanted.length} bodies of routes, ${failed.length} failed\n`,
    );
    process.exitCode = status === 0 && missing.length === 0 && failed.length === 0 ? 0 : 1;
  } else process.stdout.write(`${skippedPrefix}openapi-typescript could not be installed\n`);
} finally {
  if (given === undefined) rmSync(folder, { recursive: true, force: true });
}
