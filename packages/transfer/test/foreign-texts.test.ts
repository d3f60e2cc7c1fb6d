import { appendFileSync } from "node:fs";
import { buildContext } from "@throughline/history";
import { createMemoryStore } from "@throughline/store-memory";
import type { SessionStore } from "@throughline/core";
import type { ImportSource } from "../src/import-types.ts";
import { describe, expect, it } from "vitest";
import { exported, fixtureFolder, importAll, recordsOf, refOf } from "./fixture-folder.ts";

async function said(store: SessionStore, source: ImportSource): Promise<readonly string[]> {
  const state = await store.load(refOf(source));
  const { messages } = buildContext(await recordsOf(store, refOf(source)), { headId: state?.head.headId ?? null });
  return messages.map(
    ({ role, content }) => `${role}: ${content.map((block) => ("text" in block ? block.text : "")).join("")}`,
  );
}

/** A piece of a text is stored on one line. */
function asItWas(source: string): string {
  return source.replaceAll(/\\[\\n]/g, (escape) => (escape === "\\n" ? "\n" : "\\"));
}

const start = "# aider chat started at 2026-06-30 10:00:00\n\n";

describe("a text of another program", () => {
  it("grows by turns, and by the rest of one that was being written", async () => {
    using folder = fixtureFolder();
    const path = folder.write(".aider.chat.history.md", `${start}#### Hi\nHello, I`);
    await using store = createMemoryStore();
    const steps: readonly (readonly [added: string, words: readonly string[]])[] = [
      ["", ["user: Hi\n", "assistant: Hello, I"]],
      [" am here.\n", ["user: Hi\n", "assistant: Hello, I am here.\n"]],
      ["And more.\n> Tokens: 5\n", ["user: Hi\n", "assistant: Hello, I am here.\nAnd more.\n"]],
      ["#### Thanks\n", ["user: Hi\n", "assistant: Hello, I am here.\nAnd more.\n", "user: Thanks\n"]],
      [`${start}#### New\n`, ["user: New\n"]],
    ];
    for (const [added, words] of steps) {
      appendFileSync(path, added);
      const [source] = (await importAll(store, path)) as [ImportSource];
      expect([added, source.state, source.lost, source.error]).toEqual([
        added,
        added === "" ? "imported" : "grown",
        [],
        null,
      ]);
      expect(await said(store, source)).toEqual(words);
      expect((await importAll(store, path))[0]?.state).toBe("unchanged");
    }
  });

  it.each([
    ["a whole reply", "<|start|>assistant<|channel|>final<|message|>Hello.<|return|>\n", ""],
    ["a reply that was cut off", "<|start|>assistant<|channel|>final<|message|>Hello", "<|end|>"],
    ["a question for a reply", "<|start|>assistant", "<|channel|>final<|message|><|end|>"],
  ])("is continued behind %s", async (_, last, between) => {
    using folder = fixtureFolder();
    const text = `<|start|>user<|message|>Hi \\n\né<|end|>\n${last}`;
    const path = folder.write("c.harmony.txt", text);
    await using store = createMemoryStore();
    const [source] = (await importAll(store, path)) as [ImportSource];
    expect(await exported(store, refOf(source), "harmony")).toBe(Buffer.from(text).toString("latin1"));
    const added = { type: "message", message: { role: "user", content: "More" } };
    await store.append(refOf(source), [added]);
    const continued = Buffer.from(await exported(store, refOf(source), "harmony"), "latin1").toString();
    expect(continued).toBe(`${text}${between}<|start|>user<|message|>More<|end|>`);
    const [again] = (await importAll(store, folder.write("d.harmony.txt", continued))) as [ImportSource];
    expect((await said(store, again)).at(-1)).toBe("user: More");
  });

  it("asks for a reply, which is added where it belongs", async () => {
    using folder = fixtureFolder();
    const text = "<|start|>user<|message|>Hi<|end|><|start|>assistant";
    await using store = createMemoryStore();
    const [source] = (await importAll(store, folder.write("c.txt", text))) as [ImportSource];
    const reply = { role: "assistant", content: [{ type: "text", text: "Hello." }], stopReason: "stop" };
    await store.append(refOf(source), [{ type: "message", message: reply }]);
    expect(await exported(store, refOf(source), "harmony")).toBe(`${text}<|channel|>final<|message|>Hello.<|end|>`);
  });

  it("cut into pieces is the text again, wherever its chunks end", { tags: ["slow"] }, async () => {
    using folder = fixtureFolder();
    const turns = Array.from(
      { length: 3000 },
      (_, turn) => `#### Question ${turn} \\n é\n${"Words of an answer.\n".repeat(turn % 7)}> ${turn}\n`,
    );
    const text = start + turns.join("");
    const path = folder.write("history.md", text);
    await using store = createMemoryStore();
    const [source] = (await importAll(store, path)) as [ImportSource];
    expect(source).toMatchObject({ format: "aider", state: "imported", lost: [], repaired: 0, error: null });
    expect(source.lines).toBe(source.records);
    const sources = (await recordsOf(store, refOf(source))).map((stored) => asItWas(String(stored.source)));
    expect(sources.join("")).toBe(text);
    expect((await importAll(store, path))[0]?.state).toBe("unchanged");
  });
});
