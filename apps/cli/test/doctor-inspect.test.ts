import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { sessionRef } from "@throughline/core";
import type { Finding } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { repairTranscript } from "@throughline/openclaw-format/internal";
import { inspectStore, mergeFindings, needsAttention } from "@throughline/transfer/internal";
import { inspectStoreSize } from "../src/doctor/inspect-store-folder.ts";
import { inspectTranscript } from "../src/doctor/inspect-transcript.ts";

const header = '{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/home/ada"}';

function message(id: string, parentId: string | null, fields: object): string {
  return JSON.stringify({ type: "message", id, parentId, timestamp: "2026-01-01T00:00:01.000Z", message: fields });
}

const user = (id: string, parentId: string | null): string =>
  message(id, parentId, { role: "user", content: `text of ${id}` });

const call = (id: string, parentId: string, callId: string): string =>
  message(id, parentId, {
    role: "assistant",
    content: [{ type: "toolCall", id: callId, name: "read", arguments: {} }],
    stopReason: "toolUse",
  });

const result = (id: string, parentId: string, callId: string): string =>
  message(id, parentId, {
    role: "toolResult",
    toolCallId: callId,
    toolName: "read",
    content: [{ type: "text", text: "ok" }],
    isError: false,
  });

async function* bytesOf(text: string, chunkBytes = 7): AsyncGenerator<Uint8Array, void, void> {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}

async function inspect(lines: readonly string[], end = "\n"): Promise<readonly [string, number | null][]> {
  const { findings } = await inspectTranscript(bytesOf(lines.join("\n") + end), { path: "a.jsonl" });
  expect(findings.every(({ path }) => path === "a.jsonl")).toBe(true);
  return findings.map(({ code, line }) => [code, line] as const).map(([code, line]) => [code, line]);
}

async function repair(text: string): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of repairTranscript(bytesOf(text), { sessionId: "from-name" })) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}

describe("inspectTranscript", () => {
  it("ends with ABORTED when its signal is aborted", async () => {
    const signal = AbortSignal.abort();
    await expect(inspectTranscript(bytesOf(`${header}\n`), { signal })).rejects.toMatchObject({ code: "ABORTED" });
  });

  it("finds nothing in a transcript that is in order", async () => {
    expect(
      await inspect([header, user("a", null), call("b", "a", "c1"), result("c", "b", "c1"), user("d", "c")]),
    ).toEqual([]);
  });

  it("of a line that is too long that an import leaves it in the file", { tags: ["slow"] }, async () => {
    const long = user("x".repeat(9 * 1024 * 1024), null);
    const { findings } = await inspectTranscript(bytesOf(`${header}\n${long}\n`, 1024 * 1024));
    expect(findings.map(({ code, line, remedy }) => [code, line, remedy.includes("import")])).toEqual([
      ["LINE_TOO_LONG", 2, true],
    ]);
  });

  it.each<[string, readonly string[], string, readonly [string, number | null][]]>([
    ["a line that is no JSON", [header, user("a", null), "{oops", user("b", "a")], "\n", [["LINE_MALFORMED", 3]]],
    ["a line that was cut", [header, user("a", null), '{"type":"mess'], "", [["TAIL_TORN", 3]]],
    ["no header", [user("a", null)], "\n", [["HEADER_MISSING", 1]]],
    ["a missing parent", [header, user("a", null), user("b", "gone")], "\n", [["ORPHAN_PARENT", 3]]],
    ["an id twice", [header, user("a", null), user("a", "a")], "\n", [["DUPLICATE_ID", 3]]],
    [
      "a type nobody knows",
      [header, user("a", null), '{"type":"mystery","id":"m","parentId":"a","timestamp":"2026-01-01T00:00:02.000Z"}'],
      "\n",
      [["UNKNOWN_TYPE", 3]],
    ],
    [
      "a call without a result",
      [header, user("a", null), call("b", "a", "c1"), user("c", "b")],
      "\n",
      [["TOOL_CALL_UNANSWERED", 3]],
    ],
    ["a result without a call", [header, user("a", null), result("b", "a", "c1")], "\n", [["TOOL_RESULT_ORPHAN", 3]]],
    [
      "a message without content",
      [header, user("a", null), message("b", "a", { role: "user" })],
      "\n",
      [["RECORD_INVALID", 3]],
    ],
  ])("finds %s, once, with its line", async (_, lines, end, expected) => {
    expect((await inspect(lines, end)).toSorted()).toEqual(expected.toSorted());
  });

  it("says where in the file a finding stands that only knows its record", async () => {
    const lines = [header, user("a", null), call("b", "a", "c1"), user("c", "b")];
    const { findings } = await inspectTranscript(bytesOf(lines.join("\n")));
    expect(findings[0]).toMatchObject({
      code: "TOOL_CALL_UNANSWERED",
      line: 3,
      byteOffset: header.length + 1 + user("a", null).length + 1,
      recordId: "b",
    });
  });
});

describe("repairTranscript", () => {
  it.each([
    ["unreadable lines", `${header}\n${user("a", null)}\n{oops\n\n${user("b", "a")}\n{"type":"mess`],
    ["a missing header", `${user("a", null)}\n${user("b", "a")}\n`],
    [
      "an old version",
      `{"type":"session","id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":""}\n{"type":"message","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"hi"}}\n`,
    ],
    [
      "orphans, rings and doubles",
      `${header}\n${user("a", "b")}\n${user("b", "a")}\n${user("b", "b")}\n${user("c", "gone")}\n`,
    ],
  ])("leaves nothing to worry about after %s", async (_, text) => {
    const repaired = await repair(text);
    const { findings, header: repairedHeader } = await inspectTranscript(bytesOf(repaired));
    expect(findings.filter(({ severity }) => severity !== "info")).toEqual([]);
    expect(repairedHeader).toMatchObject({ version: 3, sessionId: expect.stringMatching(/^(s1|from-name)$/) });
    const kept = (given: string): number => given.split('"role":"user"').length;
    expect(kept(repaired)).toBe(kept(text));
  });
});

describe("the id a file's name states", () => {
  it("is compared with the header's", async () => {
    const text = `${header}\n${user("a", null)}\n`;
    const codes = async (sessionId: string | null): Promise<readonly string[]> =>
      (await inspectTranscript(bytesOf(text), { sessionId })).findings.map(({ code }) => code);
    expect([await codes("s1"), await codes(null), await codes("s2")]).toEqual([[], [], ["HEADER_MISMATCH"]]);
  });
});

describe("inspectStore", () => {
  it("lets a signal in, also at a store that answers at once", async () => {
    const store = createMemoryStore();
    for (let at = 0; at < 300; at++) {
      const ref = sessionRef({ key: `agent:main:s${at}` });
      await store.save(ref, { sessionId: `s${at}` }, { ifRevision: null });
      await store.append(ref, [{ type: "message", message: { role: "user", content: "a" } }]);
    }
    const interrupt = new AbortController();
    setImmediate(() => interrupt.abort());
    await expect(Array.fromAsync(inspectStore(store, { signal: interrupt.signal }))).rejects.toMatchObject({
      code: "ABORTED",
    });
  });

  it("reads every session and names the key", async () => {
    await using store = createMemoryStore();
    const good = sessionRef({ key: "agent:main:good" });
    const odd = sessionRef({ key: "agent:other:odd" });
    await store.save(good, { sessionId: "g" }, { ifRevision: null });
    await store.save(odd, { sessionId: "o" }, { ifRevision: null });
    await store.append(good, [{ type: "message", message: { role: "user", content: "hi" } }]);
    await store.append(odd, [
      { type: "message", message: JSON.parse(call("x", "y", "c1")).message },
      { type: "message", message: { role: "user", content: "hi" } },
    ]);
    const findings: Finding[] = [];
    for await (const finding of inspectStore(store)) findings.push(finding);
    expect(findings.map(({ code, key }) => [code, key])).toEqual([["TOOL_CALL_UNANSWERED", "agent:other:odd"]]);
  });
});

describe("mergeFindings and needsAttention", () => {
  const base: Finding = {
    code: "DUPLICATE_ID",
    severity: "warning",
    path: null,
    key: null,
    line: null,
    byteOffset: null,
    recordId: "a",
    message: "m",
    remedy: "r",
    repaired: false,
  };

  it("counts the same code about the same record once and adds the place", () => {
    const places = new Map([["a", { line: 4, byteOffset: 90 }]]);
    const merged = mergeFindings([[{ ...base, line: 4 }], [base, { ...base, code: "SELF_PARENT" }]], {
      path: "p",
      places,
    });
    expect(merged.map(({ code, line, byteOffset, path }) => [code, line, byteOffset, path])).toEqual([
      ["DUPLICATE_ID", 4, 90, "p"],
      ["SELF_PARENT", 4, 90, "p"],
    ]);
  });

  it("calls for attention from a warning on", () => {
    expect(needsAttention([{ ...base, severity: "info" }])).toBe(false);
    expect(needsAttention([{ ...base, severity: "info" }, base])).toBe(true);
  });
});

describe("inspectStoreSize", () => {
  it("warns of an agent with more sessions than asked, in every namespace, with a command that moves them", () => {
    const root = mkdtempSync(join(tmpdir(), "size-"));
    try {
      const folders = ["agents/main/sessions", "agents/small/sessions", "namespaces/n/agents/main/sessions"];
      for (const [place, folder] of folders.entries()) {
        mkdirSync(join(root, folder), { recursive: true });
        for (let count = 0; count < (place === 1 ? 2 : 3); count++)
          writeFileSync(join(root, folder, `s${count}.jsonl`), "");
        writeFileSync(join(root, folder, "sessions.json"), "{}");
      }
      const found = [...inspectStoreSize(root, 2)];
      expect(found.map(({ code, severity, path }) => [code, severity, path])).toEqual(
        [folders[0], folders[2]].map((folder) => ["LOG_OVERSIZED", "warning", join(root, folder ?? "")]),
      );
      expect(found[0]?.message).toContain("3 transcripts");
      expect(found[0]?.remedy).toContain(`throughline copy --all --store jsonl:${root} --to-store sqlite:sessions.db`);
      expect([...inspectStoreSize(root)]).toEqual([]);
    } finally {
      rmSync(root, { recursive: true });
    }
  });
});
