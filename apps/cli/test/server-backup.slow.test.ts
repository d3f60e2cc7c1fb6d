import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { objects, runHere, start, temporaryDirectory } from "./harness.ts";

const directory = temporaryDirectory();
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
  directory.remove();
});

interface Served {
  readonly ask: (path: string, token: string) => Promise<{ readonly status: number; readonly body: Body }>;
  readonly stop: () => Promise<unknown>;
}

interface Body {
  readonly items: readonly { readonly key?: string; readonly action?: string; readonly record?: unknown }[];
  readonly nextCursor: string | null;
}

async function serve(home: string): Promise<Served> {
  const child = start(home, ["serve", "--port", "0", "--json"]);
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk) => (stdout += String(chunk)));
  child.stderr.on("data", (chunk) => (stderr += String(chunk)));
  const ended = new Promise((resolve) => child.on("close", resolve));
  const stop = (): Promise<unknown> => {
    child.kill("SIGTERM");
    return ended;
  };
  stops.push(stop);
  await expect.poll(() => stdout, { message: stderr }).toContain("\n");
  const { url } = JSON.parse(stdout) as { readonly url: string };
  return {
    ask: async (path, token) => {
      const response = await fetch(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${token}` } });
      return { status: response.status, body: (await response.json()) as Body };
    },
    stop,
  };
}

it("a backup restored into an empty folder has the sessions, the tokens and the audit log, and old cursors work", async () => {
  const [old, restored] = [join(directory.path, "old"), join(directory.path, "restored")];
  for (const home of [old, restored]) mkdirSync(home, { mode: 0o700 });
  const settings = JSON.stringify({ server: { cursorKey: "5e".repeat(32) } });
  writeFileSync(join(old, "config.json"), settings, { mode: 0o600 });
  const keys = ["a", "b", "c"].map((name) => `agent:main:cli:direct:${name}`);
  for (const key of keys) await runHere(old, ["append", key], { stdin: `{"type":"note","text":"${key}"}\n` });
  const make = async (name: string, scopes: string): Promise<string> =>
    (await runHere(old, ["token", "create", name, "--scopes", scopes, "--quiet"])).stdout.trim();
  const [kept, revoked] = [await make("kept", "read,admin"), await make("revoked", "read")];
  await runHere(old, ["token", "revoke", revoked.split("_")[1] ?? ""]);
  const before = await serve(old);
  const pages = "/sessions?sort=key&limit=1";
  const first = await before.ask(pages, kept);
  const cursor = first.body.nextCursor ?? "";
  expect([first.status, first.body.items.map(({ key }) => key)]).toEqual([200, keys.slice(0, 1)]);
  // While the server runs.
  const backup = join(directory.path, "backup.db");
  expect((await runHere(old, ["backup", backup, "--json"])).code).toBe(0);
  await before.stop();
  expect(readFileSync(backup).includes(kept.slice(-43))).toBe(false);

  // What the guide says: the configuration beside the backup.
  writeFileSync(join(restored, "config.json"), settings, { mode: 0o600 });
  const run = await runHere(restored, ["restore-backup", backup, "--yes", "--json"]);
  expect([run.code, run.stderr]).toEqual([0, ""]);
  const after = await serve(restored);
  const second = await after.ask(`${pages}&cursor=${cursor}`, kept);
  expect([second.status, second.body.items.map(({ key }) => key)]).toEqual([200, keys.slice(1, 2)]);
  const { body } = await after.ask(`/sessions/${keys[2]}/records`, kept);
  expect(body.items.map(({ record }) => record)).toEqual([expect.objectContaining({ text: keys[2] })]);
  expect((await after.ask("/store", revoked)).status).toBe(401);
  const audit = await after.ask("/admin/audit", kept);
  expect(audit.body.items.map(({ action }) => action)).toEqual(["token.create", "token.create", "token.revoke"]);
  const listed = objects((await runHere(restored, ["token", "list", "--json"])).stdout);
  expect(listed.map(({ label }) => label)).toContain("kept");
  await after.stop();
});
