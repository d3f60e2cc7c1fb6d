import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { readWindow, type SessionRef, type SessionStore } from "@throughline/core";
import { buildContext } from "@throughline/history";
import { renderAnthropic } from "@throughline/history/anthropic";
import { createMemoryStore } from "@throughline/store-memory";
import type { ExportRemark } from "../src/export-types.ts";
import { exportSession } from "@throughline/transfer";
import { describe, expect, it } from "vitest";
import { fixtureFolder, importAll, refOf } from "./fixture-folder.ts";
import { normalMessages, rebuildHistory } from "./rebuild-history.ts";

const corpus = process.env["THROUGHLINE_CORPUS"] ?? "";
const folders = ["pi", "openclaw-legacy-variants", "golden"].map((name) => join(corpus, name));

/** What Anthropic's API would be sent, as far as the session goes. */
async function messagesOf(
  store: SessionStore,
  ref: SessionRef,
): Promise<readonly { role: string; content: unknown }[]> {
  const { state, records } = await readWindow(store, ref);
  const { messages, repairs } = renderAnthropic(buildContext(records, { headId: state.head.headId }), {
    trailingAssistant: "continue",
  });
  return repairs.some(({ rule }) => rule === "continuation-added") ? messages.slice(0, -1) : messages;
}

async function flatText(store: SessionStore, ref: SessionRef, remarks: ExportRemark[] = []): Promise<string> {
  const pieces = exportSession(store, ref, { to: "claw0", onRemark: (remark) => remarks.push(remark) });
  return Buffer.concat(await Array.fromAsync(pieces)).toString();
}

/** The types of a file's lines, without the header. */
function typesOf(text: string): readonly string[] {
  const lines = text.trimEnd().split("\n").slice(1);
  return lines.map((line) => String((JSON.parse(line) as { readonly type?: unknown }).type));
}

describe("a result as claw0 reads it", () => {
  it("is there for its first version's reader too, and is one result when it is imported", async () => {
    const flat = [
      { type: "user", content: "Hi" },
      { type: "tool_use", name: "f", tool_use_id: "t1", input: {} },
      { type: "tool_result", tool_use_id: "t1", content: "ok" },
    ];
    using folder = fixtureFolder({ "x.jsonl": flat.map((line) => `${JSON.stringify(line)}\n`).join("") });
    const store = createMemoryStore();
    const [source] = await importAll(store, folder.at("x.jsonl"));
    const text = await flatText(store, refOf(source!));
    const result = JSON.parse(text.trimEnd().split("\n").at(-1) ?? "") as { readonly output?: unknown };
    expect(result).toMatchObject({ type: "tool_result", tool_use_id: "t1", content: "ok", output: "ok" });
    const [again] = await importAll(createMemoryStore(), folder.write("y.jsonl", text));
    expect([again?.records, again?.repaired]).toEqual([4, 0]);
  });
});

describe.skipIf(corpus === "" || !existsSync(corpus))(
  "real transcripts as claw0 reads them (THROUGHLINE_CORPUS)",
  () => {
    it("give claw0's own reader and our import the context they had [C07, REC-02, REC-03, REC-05, REC-06]", async () => {
      let sessions = 0;
      const types = new Set<string>();
      for (const folder of folders.filter((path) => existsSync(path) && readdirSync(path).length > 0)) {
        const store = createMemoryStore();
        await importAll(store, folder);
        const { sessions: found } = await store.list({ state: "any", limit: 200 });
        for (const { ref, sessionId } of found) {
          const where = `${folder} ${ref.key} ${sessionId}`;
          const wanted = await messagesOf(store, ref);
          const remarks: ExportRemark[] = [];
          const text = await flatText(store, ref, remarks);
          for (const type of typesOf(text)) types.add(type);
          expect(normalMessages(rebuildHistory(text)), where).toEqual(normalMessages(wanted));
          using again = fixtureFolder({ "again.jsonl": text });
          const other = createMemoryStore();
          const [imported] = await importAll(other, again.at("again.jsonl"));
          expect(imported).toMatchObject({ format: "claw0", key: ref.key, sessionId, lost: [] });
          expect(await messagesOf(other, refOf(imported!)), where).toEqual(wanted);
          const state = await store.load(ref);
          const leftOut = remarks.reduce((sum, { what, records = 1 }) => sum + (what === "left-out" ? records : 0), 0);
          const { records } = await readWindow(store, ref);
          const inContext = buildContext(records, { headId: state?.head.headId ?? null }).recordsInContext;
          expect(leftOut).toBe((state?.head.lastSeq ?? 0) - inContext);
          sessions += 1;
        }
      }
      expect(sessions).toBeGreaterThan(10);
      expect([...types].toSorted()).toEqual(["assistant", "tool_result", "tool_use", "user"]);
    });
  },
);
