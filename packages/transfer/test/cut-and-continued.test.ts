import { writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { SessionStore } from "@throughline/core";
import { foreignFormatNames } from "@throughline/foreign-formats/internal";
import { buildContext } from "@throughline/history";
import { createMemoryStore } from "@throughline/store-memory";
import type { ExportFormat } from "../src/export-types.ts";
import type { ImportFormat, ImportSource } from "../src/import-types.ts";
import { describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { sampleTexts, textOf } from "../../foreign-formats/test/sample-texts.ts";
import { exported, fixtureFolder, header, importAll, jsonLines, message, recordsOf, refOf } from "./fixture-folder.ts";

interface Sample {
  readonly format: ImportFormat;
  /** The format that gives the bytes back; null for one that is read only. */
  readonly to: ExportFormat | null;
  /** The name of the file, below a folder where the program looks at that. */
  readonly name: string;
  readonly text: string;
}

/** Every format of files: a database has no beginning that could be read without its end. */
const samples: readonly Sample[] = [
  {
    format: "pi",
    to: "jsonl",
    name: "s.jsonl",
    text: jsonLines(header, message("a", null), message("b", "a", "é\u2028"), message("c", "b")),
  },
  {
    format: "claw0",
    to: "jsonl",
    name: "c.jsonl",
    text: jsonLines(
      { type: "user", content: "Hi", ts: 1_790_000_000 },
      { type: "tool_use", name: "f", tool_use_id: "t1", input: {}, ts: 1_790_000_001 },
      { type: "tool_result", tool_use_id: "t1", output: "ok", ts: 1_790_000_002 },
    ),
  },
  ...foreignFormatNames
    .filter((name) => name !== "langgraph" && name !== "cursor")
    .map((format) => {
      const { path } = sampleTexts[format];
      const name = format === "cline" ? join("tasks", "1", basename(path)) : basename(path);
      // Nothing writes Aider's text.
      const to = format === "aider" ? null : (format as ExportFormat);
      return { format, to, name, text: textOf(sampleTexts[format]) };
    }),
];

/** What a model reads of the session. */
async function contextOf(store: SessionStore, source: ImportSource): Promise<unknown> {
  const headId = (await store.load(refOf(source)))?.head.headId ?? null;
  const { messages, model, thinkingLevel } = buildContext(await recordsOf(store, refOf(source)), { headId });
  const read = messages.map(({ role, content, ...more }) => [role, content, "toolCallId" in more && more.toolCallId]);
  return { read, model, thinkingLevel };
}

async function importOne(store: SessionStore, path: string, from: ImportFormat | "auto"): Promise<ImportSource> {
  const [source, ...others] = await importAll(store, path, { from });
  if (source === undefined || others.length > 0) throw new Error(`${others.length} others`);
  return source;
}

/** Every length, or some of them: both sides of each line feed among them. */
function cutsOf(bytes: Buffer): readonly number[] {
  const step = testSize({ short: Math.ceil(bytes.length / 16), long: 1 });
  const all = Array.from({ length: bytes.length - 1 }, (_, at) => at + 1);
  return all.filter((size) => size % step === 0 || (step > 1 && size % 3 === 0 && bytes[size] === 0x0a));
}

describe("a file that is imported while its program writes it", () => {
  it.each(samples)("is whole afterwards, wherever it was cut: $format", { timeout: 300_000 }, async (sample) => {
    const { format, to, name, text } = sample;
    using folder = fixtureFolder();
    const bytes = Buffer.from(text);
    await using fresh = createMemoryStore();
    const path = folder.write(name, bytes);
    const context = await contextOf(fresh, await importOne(fresh, path, "auto"));
    for (const [index, size] of cutsOf(bytes).entries()) {
      // Every second file grows in two steps, and is read as the format that is named.
      const from = index % 2 === 0 ? "auto" : format;
      const sizes = index % 2 === 0 ? [size] : [Math.ceil(size / 2), size];
      await using store = createMemoryStore();
      let isIn = false;
      for (const part of sizes) {
        writeFileSync(path, bytes.subarray(0, part));
        const cut = await importOne(store, path, from);
        isIn ||= cut.error === null;
        if (cut.error === null && to !== null)
          expect([part, await exported(store, refOf(cut), to)]).toEqual([part, latin(bytes.subarray(0, part))]);
      }
      writeFileSync(path, bytes);
      const whole = await importOne(store, path, from);
      expect([sizes, whole.state, whole.error]).toEqual([sizes, isIn ? "grown" : "imported", null]);
      expect([sizes, await contextOf(store, whole)]).toEqual([sizes, context]);
      if (to !== null) expect([sizes, await exported(store, refOf(whole), to)]).toEqual([sizes, latin(bytes)]);
      expect((await importOne(store, path, from)).state).toBe("unchanged");
    }
  });
});

function latin(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("latin1");
}
