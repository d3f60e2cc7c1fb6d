import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import type { ExportFormat } from "../src/export-types.ts";
import { exported, fixtureFolder, importAll, recordsOf, refOf } from "./fixture-folder.ts";

type Fields = Readonly<Record<string, unknown>>;

const codexId = "019e03b2-11a2-7320-9098-5d831813e66c";
const time = (write: number): string => new Date(1_790_000_000_000 + write * 1000).toISOString();

const items: readonly Fields[] = [
  { type: "message", role: "user", content: [{ type: "input_text", text: "Run ls" }] },
  { id: "fc_1", type: "function_call", name: "shell", arguments: "{}", call_id: "c1" },
  { type: "function_call_output", call_id: "c1", output: "a.txt" },
  { id: "e1", type: "message", role: "system", content: [{ type: "input_text", text: "Slow" }] },
  { id: "m1", type: "message", role: "assistant", content: [{ type: "output_text", text: "Done." }] },
];
const messages: readonly Fields[] = [
  { id: "m1", role: "user", content: [{ type: "text", text: "Run ls" }], ts: 1 },
  { id: "m2", role: "assistant", content: [{ type: "tool_use", id: "c1", name: "run", input: {} }], ts: 2 },
  { id: "m3", role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: [{ result: "a" }] }], ts: 3 },
  { id: "m4", role: "assistant", content: [{ type: "text", text: "Done." }], ts: 4 },
];

/** Programs that write the whole document anew each time, with the time of the writing in its beginning. */
const programs: readonly {
  readonly format: ExportFormat;
  readonly name: string;
  readonly list: readonly Fields[];
  text(listed: readonly Fields[], write: number): string;
}[] = [
  {
    format: "codex",
    name: `.codex/sessions/rollout-2025-05-17-${codexId}.json`,
    list: items,
    text: (listed, write) =>
      JSON.stringify({ session: { timestamp: time(write), id: codexId, instructions: "" }, items: listed }, null, 2),
  },
  {
    format: "cline" as ExportFormat,
    name: ".cline/data/sessions/1_a/1_a.messages.json",
    list: messages,
    text: (listed, write) => {
      const head = { version: 1, updated_at: time(write), agent: "lead", sessionId: "1_a" };
      return `${JSON.stringify({ ...head, messages: listed, system_prompt: `Prompt ${write}` }, null, 2)}\n`;
    },
  },
];

describe("a document that its program writes anew for each message", () => {
  it.each(programs)("grows by the new ones, and comes back as it was written last: $format", async (program) => {
    const { format, name, list, text } = program;
    using folder = fixtureFolder();
    await using store = createMemoryStore();
    for (let count = 0; count <= list.length; count++) {
      const written = text(list.slice(0, count), count);
      const path = folder.write(name, written);
      const [source] = await importAll(store, path);
      expect([count, source?.state, source?.error]).toEqual([count, count === 0 ? "imported" : "grown", null]);
      expect([count, await exported(store, refOf(source!), format)]).toEqual([count, written]);
      const records = await recordsOf(store, refOf(source!));
      const elements = records.filter(
        ({ record }) => record["documentPart"] === undefined && record["derivedFrom"] === undefined,
      );
      expect([count, elements.length]).toEqual([count, count]);
    }
  });
});
