import { spawnSync } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { createSqliteStore } from "@throughline/store-sqlite";
import { expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createFaultyDriver } from "./faulty-driver.ts";
import { createSession, testFolder } from "./test-folder.ts";

const script = fileURLToPath(new URL("purge-beside.ts", import.meta.url));
const large = "x".repeat(300_000);

/** The statements in front of which another process may have purged a session, as `verify` comes to them. */
const moments = [
  ["the records of a session are counted", /count\(\*\) FROM store_records WHERE/, 1],
  ["its entry is read", /^SELECT entry/, 1],
  ["its records are read", /^SELECT .* text.* FROM store_records WHERE session = \? AND seq/, 1],
  ["a payload is read", /^SELECT content FROM store_payloads/, 1],
  ["the origin of its fork is looked for", /^SELECT \* FROM store_sessions WHERE session = \?/, 3],
] as const;

function purgeElsewhere(...given: readonly string[]): void {
  const { status, stderr } = spawnSync(process.execPath, ["--conditions=@throughline/source", script, ...given]);
  expect([status, String(stderr)]).toEqual([0, ""]);
}

it.each(moments)("a purge by another process just before %s is no damage", async (_what, pattern, time) => {
  const path = join(testFolder(), "store.db");
  const faults = createFaultyDriver();
  await using store = createSqliteStore({ path, driver: faults.driver, searchFill: "on-demand" });
  const ref = await createSession(store, "a");
  await store.append(ref, [say("shared"), say(large, { id: "large" }), say("last")]);
  await store.fork?.fork(ref, refOf("fork"), { sessionId: "session-fork", atSeq: 1 });
  let times = 0;
  faults.before((sql) => {
    if (pattern.test(sql) && ++times === time) purgeElsewhere(path, "a");
  });
  expect(await Array.fromAsync(store.maintenance?.verify({ full: true }) ?? [])).toEqual([]);
  expect(times).toBeGreaterThanOrEqual(time);
  faults.before(() => undefined);
  expect(await store.load(ref)).toBeNull();
  expect(await Array.fromAsync(store.maintenance?.verify({ full: true }) ?? [])).toEqual([]);
});

it("a redaction by another process just before a payload is read is no damage", async () => {
  const path = join(testFolder(), "store.db");
  const faults = createFaultyDriver();
  await using store = createSqliteStore({ path, driver: faults.driver, searchFill: "on-demand" });
  const ref = await createSession(store, "a");
  await store.append(ref, [say(large, { id: "large" })]);
  let times = 0;
  faults.before((sql) => {
    if (sql.startsWith("SELECT content FROM store_payloads") && ++times === 1) purgeElsewhere(path, "a", "large");
  });
  expect(await Array.fromAsync(store.maintenance?.verify({ full: true }) ?? [])).toEqual([]);
  expect(times).toBe(1);
});

it("a session that another process purges just before its entry is read is loaded as it was, and is gone then", async () => {
  const path = join(testFolder(), "store.db");
  const faults = createFaultyDriver();
  await using store = createSqliteStore({ path, driver: faults.driver, searchFill: "on-demand" });
  const ref = await createSession(store, "a");
  let times = 0;
  faults.before((sql) => {
    if (sql.startsWith("SELECT entry") && ++times === 1) purgeElsewhere(path, "a");
  });
  expect(await store.load(ref)).toMatchObject({ entry: { sessionId: "session-a" } });
  expect(await store.load(ref)).toBeNull();
});
