import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execPath } from "node:process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { createSqliteStore } from "@throughline/store-sqlite";
import { testSize } from "../../../tools/test-size.ts";
import { createCheckpointSaver } from "../src/checkpoint-saver.ts";
import { thread } from "./graphs.ts";
import { conversationOf, outline } from "./scripted.ts";

it("loses nothing of processes that run graphs on one thread at once", async () => {
  const { processes, runs } = testSize({ short: { processes: 2, runs: 3 }, long: { processes: 8, runs: 25 } });
  const folder = mkdtempSync(join(tmpdir(), "throughline-writers-"));
  try {
    const path = join(folder, "writers.db");
    const program = join(import.meta.dirname, "replies.ts");
    const outputs = await Promise.all(
      Array.from({ length: processes }, (_, at) =>
        promisify(execFile)(execPath, ["--conditions=@throughline/source", program, path, `w${at}`, String(runs)]),
      ),
    );
    const outcomes = outputs.flatMap(({ stdout }) => stdout.trim().split("\n"));
    const done = outcomes.filter((line) => line.endsWith(" done"));
    expect(outcomes.length).toBe(processes * runs);
    expect(outcomes.filter((line) => !line.endsWith(" done"))).toEqual([]);

    await using store = createSqliteStore({ path });
    const saver = createCheckpointSaver({ store });
    const tuples = await Array.fromAsync(saver.list(thread("t")));
    const ids = new Set(tuples.map(({ checkpoint }) => checkpoint.id));
    // The input, the message and the reply of each run: a checkpoint each, none of them twice.
    expect([tuples.length, ids.size]).toEqual([done.length * 3, done.length * 3]);
    for (const { parentConfig } of tuples)
      if (parentConfig !== undefined) expect(ids).toContain(parentConfig.configurable?.["checkpoint_id"]);
    const states = tuples.map(({ checkpoint }) => outline((checkpoint.channel_values["messages"] ?? []) as never));
    for (const line of done) {
      const [id = ""] = line.split(" ");
      const wanted = [`human: Writer ${id}`, `ai: To ${id}`];
      expect(states.some((messages) => messages.slice(-2).join() === wanted.join())).toBe(true);
    }
    // Another reader sees the state that was put last, whole, whichever process was the last.
    const spoken = await conversationOf(store, "t");
    expect(states.map((messages) => messages.join("\n"))).toContain(spoken.join("\n"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 300_000);
