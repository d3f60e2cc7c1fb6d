import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import { pageRef, pageTexts, said } from "./page-texts.ts";

describe("a session as files for people", () => {
  it("is three files of 120 records, with links, each chapter once and all numbers going on", async () => {
    const store = createMemoryStore();
    await store.save(pageRef, { sessionId: "0a1b2c3d-4e5f", label: "Größe: die Frage / 2" }, { ifRevision: null });
    const records = Array.from({ length: 120 }, (_, at) => said(at % 10 === 0 ? "user" : "assistant", `Text ${at}.`));
    await store.append(pageRef, records);
    const { texts, fileNames, records: counts } = await pageTexts(store, { to: "html", recordsPerFile: 50 });
    const stem = "größe-die-frage-2-0a1b2c3d-2026-11-30";
    expect(fileNames).toEqual([`${stem}.html`, `${stem}-1.html`, `${stem}-2.html`]);
    expect(counts).toEqual([50, 50, 20]);
    const shown = texts.map((text) => [...text.matchAll(/<p>Text (\d+)\./g)].map(([, number]) => Number(number)));
    expect(shown.flat()).toEqual(Array.from({ length: 120 }, (_, at) => at));
    for (const [index, text] of texts.entries()) {
      const link = (name: string): string => `<a href="./${encodeURIComponent(name)}">`;
      const others = fileNames.filter((_name, other) => other !== index);
      expect(others.map((name) => text.split(link(name)).length)).toEqual([3, 3]);
      const anchors = [...text.matchAll(/<section id="c(\d+)">/g)].map(([, number]) => Number(number));
      expect([anchors[0], anchors.length]).toEqual([index * 5 + 1, index === 2 ? 2 : 5]);
    }
  });

  it("marks what the conversation left, and what a fork of it continued", async () => {
    const store = createMemoryStore();
    await store.save(pageRef, { sessionId: "s1" }, { ifRevision: null });
    const first = await store.append(pageRef, [said("user", "One"), said("assistant", "Left")]);
    await store.append(pageRef, [{ ...said("assistant", "Kept"), parentId: first.records[0]?.id ?? null }]);
    const { texts } = await pageTexts(store, { to: "markdown" });
    const parts = ["One", "Another branch", "Left", "Back on the current branch", "Kept"];
    const places = parts.map((part) => texts[0]?.lastIndexOf(part) ?? -1);
    expect(places).toEqual(places.toSorted((one, other) => one - other));
    expect(places[0]).toBeGreaterThan(0);
  });

  it("has one file without any records, and no file 0", async () => {
    const store = createMemoryStore();
    await store.save(pageRef, { sessionId: "s1" }, { ifRevision: null });
    const { file, texts } = await pageTexts(store, { to: "markdown" });
    expect(texts).toHaveLength(1);
    const expected = { code: "INPUT_INVALID", message: expect.stringContaining("are 1 to 1") };
    for (const part of [0, 2, 1.5]) expect(() => file(part)).toThrow(expect.objectContaining(expected));
  });

  it("is at most 1.6 times as large as its text", async () => {
    const store = createMemoryStore();
    await store.save(pageRef, { sessionId: "s1" }, { ifRevision: null });
    const prose = "The lock is **released** before `flush` ends, so that another process may read the file.\n\n";
    const plain = "Both of them now wait for the third, and its name says so in the list of processes.\n\n";
    const code = "```ts\nexport function release(lock: Lock): void {\n  lock.close();\n}\n```\n";
    for (let at = 0; at < 200; at++)
      await store.append(pageRef, [
        said("user", "Why does the second process read an old file, and what did you change?"),
        said("assistant", [
          { type: "text", text: prose + plain.repeat(3) + code },
          { type: "toolCall", id: `t${at}`, name: "edit", arguments: { path: "a.ts", oldText: code, newText: prose } },
        ]),
        { type: "message", message: { role: "toolResult", toolCallId: `t${at}`, content: code.repeat(12) } },
      ]);
    const { texts } = await pageTexts(store, { to: "html", level: "full" });
    const [html = ""] = texts;
    const body = html.slice(html.indexOf("<main>"));
    const text = body.replaceAll(/<[^>]{1,500}>/g, "");
    expect(body.length / text.length).toBeLessThan(1.6);
  });

  it("reads a session that grows as it was at the start, and no other options", async () => {
    const store = createMemoryStore();
    await store.save(pageRef, { sessionId: "s1" }, { ifRevision: null });
    await expect(pageTexts(store, { to: "pdf" as "html" })).rejects.toMatchObject({ code: "INPUT_INVALID" });
    const { texts } = await pageTexts(store, { to: "html", fileName: "empty.html" });
    expect(texts[0]).toContain("0 messages, 0 records");
  });
});
