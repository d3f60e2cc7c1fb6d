import { once } from "node:events";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { expect, it } from "vitest";
import { damageOfLog } from "../src/log-damage.ts";
import { testFolder } from "./test-folder.ts";

/** Puts a log there and takes it away again, as processes that open and close a store in turn do. */
const comeAndGo = `
  const { writeFileSync, unlinkSync } = require("node:fs");
  const { workerData, parentPort } = require("node:worker_threads");
  const { path, stop } = workerData;
  let times = 0;
  for (; Atomics.load(stop, 0) === 0; times++) {
    writeFileSync(path, "not a whole header");
    unlinkSync(path);
  }
  parentPort.postMessage(times);
`;

it("a log that its last user takes away while it is looked at is none, and no error", async () => {
  const path = join(testFolder(), "store.db");
  const stop = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(comeAndGo, { eval: true, workerData: { path: `${path}-wal`, stop } });
  await once(worker, "online");
  const found = new Set<unknown>();
  try {
    for (let look = 0; look < 30_000; look++) found.add(damageOfLog(path, 8192));
  } finally {
    Atomics.store(stop, 0, 1);
  }
  const [times] = (await once(worker, "message")) as [number];
  expect(times).toBeGreaterThan(10);
  expect([...found]).toEqual([null]);
});
