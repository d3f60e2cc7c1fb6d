import { spawn } from "node:child_process";
import { once } from "node:events";

import process from "node:process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { loadExisting } from "@throughline/core/internal";
import { buildContext } from "@throughline/history";
import { renderAnthropic, validateAnthropic } from "@throughline/history/anthropic";
import { readCompactionDetails } from "../src/compaction-details.ts";
import { allRecords, places, ref } from "./compaction-fixture.ts";

/** Runs the worker until it has appended so often, and kills it a moment later. */
async function killWorker(scheme: string, directory: string, appends: number, laterMs: number): Promise<void> {
  const worker = spawn(
    process.execPath,
    ["--conditions=@throughline/source", fileURLToPath(new URL("kill-worker.ts", import.meta.url)), scheme, directory],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const ended = once(worker, "exit");
  const { promise: isUnderWay, resolve } = Promise.withResolvers<void>();
  let seen = 0;
  worker.stdout.on("data", (chunk: Buffer) => {
    seen += String(chunk).split("\n").length - 1;
    if (seen >= appends) resolve();
  });
  await isUnderWay;
  await new Promise((done) => setTimeout(done, laterMs));
  worker.kill("SIGKILL");
  await ended;
}

describe.each(places.filter(({ name }) => name !== "memory"))("kill -9 over store-$name", ({ name, create }) => {
  it("at any moment of compactions and retries leaves a session that goes on", async () => {
    const place = create();
    for (let round = 0; round < 3; round++) {
      await killWorker(name, place.directory, 2, round * 23);
      const store = place.open();
      const records = await allRecords(store);
      const { entry, head } = await loadExisting(store, ref);
      const compactions = records.filter(({ type }) => type === "compaction");
      const replaced = compactions.filter(({ record }) => "supersedes" in (record["details"] as object)).length;
      expect(entry.compactionCount ?? 0).toBe(compactions.length - replaced);
      const context = buildContext(records, { headId: head.headId });
      expect(context.summaryId === null).toBe(compactions.length === 0);
      expect(validateAnthropic(renderAnthropic(context).messages)).toEqual([]);
      const fromWindow = buildContext(records.slice((head.windowSeq ?? 1) - 1), { headId: head.headId });
      expect(fromWindow.messages).toEqual(context.messages);
      const shown = new Set(context.messages.map(({ recordId }) => recordId));
      const ranges = compactions.flatMap(({ record }) => readCompactionDetails(record["details"]) ?? []);
      const lost = records.filter(({ type, id, seq }) => {
        const isSummarized = ranges.some((range) => seq >= range.summarizedFromSeq && seq <= range.summarizedToSeq);
        return type === "message" && !shown.has(id) && !isSummarized;
      });
      expect(lost).toEqual([]);
      await store.close();
    }
    place.remove();
  }, 120_000);
});
