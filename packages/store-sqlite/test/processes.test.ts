import { spawn } from "node:child_process";
import { readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import Database from "better-sqlite3";
import type { SessionEvent } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { say } from "./append-drafts.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

const script = bundledWorker(new URL("./append-paced.ts", import.meta.url));

interface WriterReport {
  readonly acknowledged: readonly string[];
  readonly p99Ms: number;
}

function runWriter(path: string, name: string, count: number): Promise<WriterReport> {
  const child = spawn(process.execPath, ["--conditions=@throughline/source", script, path, name, String(count)], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0 && stderr === "") resolve(JSON.parse(stdout) as WriterReport);
      else reject(new Error(`${name} ended with ${String(code)}: ${stderr}`));
    });
  });
}

describe("eight processes", () => {
  it(
    "write to one session without an error, each record once and in one line",
    { tags: ["slow"], timeout: 120_000 },
    async () => {
      const path = join(testFolder(), "store.db");
      await using store = createSqliteStore({ path });
      const ref = await createSession(store, "shared");
      const names = ["a", "b", "c", "d", "e", "f", "g", "h"];
      const reports = await Promise.all(names.map((name) => runWriter(path, name, 40)));
      const kept = new Set<string>();
      const seqs: number[] = [];
      for await (const { records } of store.read(ref)) {
        for (const { seq, id } of records) kept.add(`${seq}:${id}`);
        seqs.push(...records.map(({ seq }) => seq));
      }
      const acknowledged = reports.flatMap((report) => report.acknowledged);
      expect(acknowledged).toHaveLength(640);
      expect(acknowledged.filter((each) => !kept.has(each))).toEqual([]);
      expect(seqs).toEqual(Array.from({ length: 640 }, (_, index) => index + 1));
      // Waiting for the lock is asynchronous: a loop that stood still for it would stand still for seconds.
      for (const { p99Ms } of reports) expect(p99Ms).toBeLessThan(1000);
    },
  );
});

describe("a log that was cut", () => {
  it("loses the commits that are no longer whole, from the end, and nothing else", async () => {
    const path = join(testFolder(), "store.db");
    const copyPath = join(testFolder(), "store.db");
    const sizes: number[] = [];
    {
      await using store = createSqliteStore({ path, searchFill: "on-demand" });
      const ref = await createSession(store, "a");
      for (let each = 0; each < 8; each++) {
        await store.append(ref, [say(`n${each}`)]);
        sizes.push(statSync(`${path}-wal`).size);
      }
      for (const side of ["", "-wal"])
        writeFileSync(`${copyPath}${side}`, readFileSync(`${path}${side}`), { mode: 0o600 });
    }
    // Into the middle of the sixth commit.
    truncateSync(`${copyPath}-wal`, (sizes[4] ?? 0) + 5000);
    await using copy = createSqliteStore({ path: copyPath, create: false });
    const ref = { namespace: "", agentId: "main", key: "agent:main:a" };
    expect(await textsOf(copy, ref)).toEqual(["n0", "n1", "n2", "n3", "n4"]);
    expect((await copy.load(ref))?.head.lastSeq).toBe(5);
    await copy.append(ref, [say("after")]);
    expect(await textsOf(copy, ref)).toHaveLength(6);
  });
});

describe("the log", () => {
  it(
    "is cut when it has grown, and the reader that prevents it is named",
    { tags: ["slow"], timeout: 60_000 },
    async () => {
      const path = join(testFolder(), "store.db");
      const events: SessionEvent[] = [];
      await using store = createSqliteStore({ path, onEvent: (event) => events.push(event), searchFill: "on-demand" });
      const ref = await createSession(store, "a");
      const reader = new Database(path, { readonly: true });
      reader.exec("BEGIN");
      reader.prepare("SELECT count(*) FROM store_records").get();
      const text = "x".repeat(200_000);
      for (let each = 0; each < 12; each++) {
        // Appended one by one: the log is looked at once in a number of commits.
        for (let part = 0; part < 32; part++) await store.append(ref, [say(text)], { durability: "process" });
      }
      const told = events.flatMap((event) => (event.name === "finding" ? [event.finding] : []));
      expect(told).toMatchObject([{ code: "LOG_OVERSIZED", severity: "warning", path: `${path}-wal` }]);
      if (process.platform === "linux") expect(told[0]?.message).toContain(String(process.pid));
      expect(statSync(`${path}-wal`).size).toBeGreaterThan(64 * 1024 * 1024);
      reader.close();
      for (let part = 0; part < 400; part++) await store.append(ref, [say(text)], { durability: "process" });
      expect(statSync(`${path}-wal`).size).toBeLessThan(64 * 1024 * 1024);
    },
  );
});
