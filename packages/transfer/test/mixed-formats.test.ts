import type { AppendDraft, SessionRef, SessionStore } from "@throughline/core";
import type { SourcedRecord } from "@throughline/core/internal";
import { buildContext } from "@throughline/history";
import { createMemoryStore } from "@throughline/store-memory";
import { exportSession } from "@throughline/transfer";
import type { ExportFormat } from "../src/export-types.ts";
import { describe, expect, it } from "vitest";
import { fixtureFolder, importAll, sessionId } from "./fixture-folder.ts";

const ref: SessionRef = { namespace: "", agentId: "main", key: `agent:main:import:direct:${sessionId}` };
const timestamp = "2026-01-02T03:04:05.006Z";

function say(id: string, parentId: string | null, content: string, more: Readonly<Record<string, unknown>> = {}) {
  return { type: "message", id, parentId, timestamp, message: { role: "user", content }, ...more };
}

/** Lines of pi, an older line, records of ours, a unit of Claude Code that means three records, and a document. */
function mixedDrafts(): AppendDraft[] {
  const foreign = { sourceFormat: "claude-code" };
  return [
    { source: JSON.stringify(say("p1", null, "from pi")).replace('"message":{', '"message": {') },
    { source: '{"type":"user","content":"flat"}', record: say("00000002", "p1", "flat") },
    say("o1", "00000002", "ours"),
    { source: '{"uuid":"c1","results":["one","two","three"]}', record: say("c1", "o1", "one", foreign) },
    say("c1~d1", "c1", "two", { ...foreign, derivedFrom: { id: "c1", index: 1 } }),
    say("c1~d2", "c1~d1", "three", { ...foreign, derivedFrom: { id: "c1", index: 2 } }),
    {
      source: '{"uuid":"c2","progress":1}',
      record: {
        type: "custom",
        id: "c2",
        parentId: "c1~d2",
        timestamp,
        customType: "claude-code.progress",
        appendMode: "side",
        ...foreign,
      },
    },
    { source: "no JSON at all", record: say("g1", "c1~d2", "from a gateway", { sourceFormat: "gateway.anthropic" }) },
    {
      source: '{"odd":1}',
      record: { type: "acme.ticket", id: "x1", parentId: "g1", timestamp, n: 1, sourceFormat: "acme" },
    },
    {
      source: JSON.stringify(say("h1", "x1", "hostile", { sourceFormat: "../x", derivedFrom: { id: "p1", index: 1 } })),
    },
  ];
}

async function mixedSession(drafts: readonly AppendDraft[] = mixedDrafts()): Promise<SessionStore> {
  const store = createMemoryStore();
  await store.save(ref, { sessionId }, { ifRevision: null });
  await store.append(ref, drafts);
  return store;
}

async function textOf(store: SessionStore, to: ExportFormat): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of exportSession(store, ref, { to })) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

async function sourced(store: SessionStore, of: SessionRef = ref): Promise<readonly SourcedRecord[]> {
  const records: SourcedRecord[] = [];
  for await (const page of store.read(of, { payload: "source" })) records.push(...page.records);
  return records;
}

async function imported(text: string): Promise<readonly SourcedRecord[]> {
  using folder = fixtureFolder({ [`${sessionId}.jsonl`]: text });
  const store = createMemoryStore();
  await importAll(store, folder.at(`${sessionId}.jsonl`), { from: "pi" });
  const { sessions } = await store.list();
  const records = await sourced(store, sessions[0]?.ref);
  return records.filter(({ type }) => type !== "session");
}

describe("a log with records of several formats", () => {
  it("is exported as records where the source is of another format, and as the source everywhere else", async () => {
    const store = await mixedSession();
    const [header = "", ...lines] = (await textOf(store, "jsonl")).trimEnd().split("\n");
    expect(JSON.parse(header)).toMatchObject({ type: "session", version: 3 });
    const records = await sourced(store);
    expect(lines).toHaveLength(records.length);
    for (const [index, { id, record, source }] of records.entries()) {
      const isOther = ["c1", "c2", "g1", "x1"].includes(id);
      expect(lines[index], id).toBe(isOther ? JSON.stringify(record) : source);
    }
  });

  it.each(["jsonl", "openclaw", "pi"] as const)("gives the same context after export to %s and import", async (to) => {
    const store = await mixedSession();
    const before = await sourced(store);
    const after = await imported(await textOf(store, to));
    const contextOf = (records: readonly SourcedRecord[]) =>
      buildContext(records).messages.map(({ role, content, recordId }) => ({ role, content, recordId }));
    expect(contextOf(after)).toEqual(contextOf(before));
    expect(after.map(({ record }) => record)).toEqual(before.map(({ record }) => record));
  });

  it("begins with a header where its first record is of another format, and ends with a line feed", async () => {
    const store = await mixedSession(
      mixedDrafts()
        .slice(3, 5)
        .map((draft, index) =>
          index === 0 && "record" in draft
            ? ({ ...draft, record: { ...(draft.record as object), parentId: null } } as AppendDraft)
            : draft,
        ),
    );
    const text = await textOf(store, "jsonl");
    expect(JSON.parse(text.split("\n")[0] ?? "")).toMatchObject({ type: "session", id: sessionId });
    expect(text.endsWith("}\n")).toBe(true);
    expect(await imported(text)).toHaveLength(2);
  });

  it("writes no bytes of a unit that was redacted", async () => {
    const store = await mixedSession();
    await store.redact(ref, ["c1", "c1~d1", "c1~d2"], { reason: "asked for" });
    for (const to of ["jsonl", "openclaw", "pi"] as const) expect(await textOf(store, to)).not.toMatch(/"two"|results/);
  });
});
