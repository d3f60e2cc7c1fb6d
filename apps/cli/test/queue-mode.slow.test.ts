import { once } from "node:events";
import { join } from "node:path";
import { loadExisting, updateEntry } from "@throughline/core/internal";
import { sessionRef } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { objects, runHere, seed, start, temporaryDirectory, user } from "./harness.ts";

const key = "agent:main:cli:direct:work";
const ref = sessionRef({ key });
const ask = ["chat", "--key", key, "--model", "offline", "--json", "--once"];
let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

it("words wait for a turn of another process where the entry has a queueMode, unless --when-busy says otherwise", async () => {
  await seed(directory.path, [{ key, drafts: [user("before")] }]);
  await using store = createSqliteStore({ path: join(directory.path, "sessions.db") });
  const fence = (await loadExisting(store, ref)).head.fence + 1;
  const leaseUntilMs = Date.now() + 600_000;
  await store.append(ref, [], {
    turn: { action: "open", turnId: "theirs", owner: "pid 7 on elsewhere/x", fence, leaseUntilMs },
  });
  const busy = async (...args: readonly string[]): Promise<unknown> =>
    objects((await runHere(directory.path, args)).stderr).at(-1)?.["code"];
  expect(await busy(...ask, "no mode")).toBe("SESSION_BUSY");
  await updateEntry(store, ref, (entry) => ({ ...entry, queueMode: "collect" }));
  expect(await busy(...ask, "asked to reject", "--when-busy", "reject")).toBe("SESSION_BUSY");
  const waiting = start(directory.path, [...ask, "waited"]);
  onTestFinished(() => void waiting.kill());
  waiting.stdin.end();
  let [answer, talk] = ["", ""];
  waiting.stdout.on("data", (chunk) => (answer += chunk));
  waiting.stderr.on("data", (chunk) => (talk += chunk));
  const isOver = once(waiting, "close");
  await expect.poll(() => talk).toContain("Waiting for another process (pid 7) to end.");
  await store.append(ref, [], { turn: { action: "close", fence } });
  expect(await isOver).toEqual([0, null]);
  expect(objects(answer)).toMatchObject([{ outcome: "done", key }]);
});
