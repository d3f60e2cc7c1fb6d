import { spawnSync } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { createSqliteStore } from "@throughline/store-sqlite";
import { expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { createSession, quickFolder, testFolder } from "./test-folder.ts";

const script = fileURLToPath(new URL("open-together.ts", import.meta.url));

it.runIf(process.platform === "linux")(
  "two threads that open a store at once leave the process its lock, without which others take the log away",
  { tags: ["slow"], timeout: testSize({ short: 120_000, long: 1_200_000 }) },
  async () => {
    const path = join(testFolder(quickFolder()), "store.db");
    {
      await using store = createSqliteStore({ path });
      await createSession(store, "a");
    }
    const { status, stdout, stderr } = spawnSync(process.execPath, [
      "--conditions=@throughline/source",
      script,
      path,
      testSize({ short: "200", long: "2000" }),
    ]);
    expect([status, String(stderr), String(stdout)]).toEqual([0, "", "0"]);
  },
);

it.each(["opened", "closed"])(
  "a store is %s when no other thread is about to open or close one",
  { tags: ["slow"] },
  async (what) => {
    const path = join(testFolder(quickFolder()), "store.db");
    const store = createSqliteStore({ path, searchFill: "on-demand" });
    if (what === "closed") await createSession(store, "a");
    const cells = new Int32Array(new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT));
    const execArgv = ["--conditions=@throughline/source"];
    const thread = new Worker(new URL("hold-turn.ts", import.meta.url), { workerData: { cells }, execArgv });
    try {
      await Atomics.waitAsync(cells, 0, 0).value;
      Atomics.store(cells, 1, 1);
      Atomics.notify(cells, 1);
      await (what === "closed" ? store.close() : store.list());
      expect(Atomics.load(cells, 2)).toBe(1);
    } finally {
      await store.close();
      await thread.terminate();
    }
  },
);
