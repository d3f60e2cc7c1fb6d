import { execFileSync } from "node:child_process";
import { symlinkSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { receiptOf } from "../src/import-receipt.ts";
import { fixtureFolder, header, importAll, jsonLines, message, recordsOf, refOf, sessionId } from "./fixture-folder.ts";

const otherId = "1b83cd1e-54ce-4a39-9089-188d2669ead4";
const thirdId = "2b83cd1e-54ce-4a39-9089-188d2669ead4";
const sessions = "agents/main/sessions";
const plain = (id: string): string => jsonLines({ ...header, id }, message("a", null), message("b", "a"));
const entry = {
  sessionId,
  updatedAt: 1706803200000,
  sessionFile: `/else/where/${sessionId}.jsonl`,
  sendPolicy: "deny",
  unknownField: { a: 1 },
  lastTo: "channel:1",
};

describe("importing an OpenClaw state directory", () => {
  it("takes every agent's sessions, with the whole of their entries", async () => {
    using folder = fixtureFolder({
      [`${sessions}/sessions.json`]: JSON.stringify({
        "agent:main:main": entry,
        "goclaw:main:main": { sessionId: otherId },
      }),
      [`${sessions}/${sessionId}.jsonl`]: plain(sessionId),
      [`${sessions}/${otherId}.jsonl`]: plain(otherId),
      [`agents/codex/sessions/${sessionId}.jsonl`]: plain(sessionId),
      "openclaw.json": "{}",
    });
    const store = createMemoryStore();
    const sources = await importAll(store, folder.path);
    expect(sources.map(({ key, agentId, format, state, records }) => [key, agentId, format, state, records])).toEqual([
      [`agent:codex:import:direct:${sessionId}`, "codex", "openclaw", "imported", 3],
      ["agent:main:main", "main", "openclaw", "imported", 3],
      ["goclaw:main:main", "main", "openclaw", "imported", 3],
    ]);
    const state = await store.load({ namespace: "", agentId: "main", key: "agent:main:main" });
    const { sessionFile, ...fields } = entry;
    expect(state?.entry).toMatchObject(fields);
    expect(state?.updatedAtMs).toBeGreaterThanOrEqual(entry.updatedAt);
    expect(receiptOf(state?.entry ?? { sessionId })).toMatchObject({
      path: folder.at(sessions, `${sessionId}.jsonl`),
      sessionFile,
      lineCount: 3,
      recordCount: 3,
      endsWithLineFeed: true,
    });
  });

  it("gives each session the time it began: its header's, its first line's, its entry's", async () => {
    const missingId = "3b83cd1e-54ce-4a39-9089-188d2669ead4";
    const flat = { role: "user", content: "hi", timestamp: "2023-05-06T07:08:09.010Z" };
    using folder = fixtureFolder({
      [`${sessions}/sessions.json`]: JSON.stringify({
        "agent:main:header": { ...entry, sessionFile: undefined },
        "agent:main:flat": { sessionId: otherId },
        "agent:main:missing": { sessionId: missingId, sessionStartedAt: 1_600_000_000_000 },
        "agent:main:timeless": { sessionId: thirdId },
      }),
      [`${sessions}/${sessionId}.jsonl`]: plain(sessionId),
      [`${sessions}/${otherId}.jsonl`]: jsonLines(flat),
      [`${sessions}/${thirdId}.jsonl`]: jsonLines({ role: "user", content: "hi" }),
    });
    const store = createMemoryStore();
    const beforeMs = Date.now();
    await importAll(store, folder.path);
    const createdAtMs = async (name: string): Promise<number> =>
      (await store.load({ namespace: "", agentId: "main", key: `agent:main:${name}` }))?.createdAtMs ?? 0;
    expect(await createdAtMs("header")).toBe(Date.parse(String(header.timestamp)));
    expect(await createdAtMs("flat")).toBe(Date.parse(flat.timestamp));
    expect(await createdAtMs("missing")).toBe(1_600_000_000_000);
    expect(await createdAtMs("timeless")).toBeGreaterThanOrEqual(beforeMs);
  });

  it("gives a topic its own transcript, which its entry need not name, and never that of its conversation", async () => {
    const parent = "agent:main:telegram:group:1";
    const index = (...keys: readonly string[]): string =>
      JSON.stringify(Object.fromEntries(keys.map((key) => [key, { sessionId, updatedAt: 1_736_942_400_000 }])));
    for (const keys of [
      [parent, `${parent}:topic:7`, `${parent}:topic:8`],
      [`${parent}:topic:7`, parent, `${parent}:topic:8`],
    ]) {
      using folder = fixtureFolder({
        "agents/main/sessions/sessions.json": index(...keys),
        [`agents/main/sessions/${sessionId}.jsonl`]: jsonLines(header, message("a", null, "in the group")),
        [`agents/main/sessions/${sessionId}-topic-7.jsonl`]: jsonLines(header, message("a", null, "in the topic")),
      });
      const store = createMemoryStore();
      const sources = await importAll(store, folder.at("agents/main/sessions"));
      const said = await Promise.all(
        sources.map(async (source) => [
          source.key,
          JSON.stringify((await recordsOf(store, refOf(source))).at(-1)?.record["message"] ?? null).slice(26, -2),
          source.findings.map(({ code }) => code),
        ]),
      );
      expect(said.toSorted()).toEqual([
        [parent, "in the group", []],
        [`${parent}:topic:7`, "in the topic", []],
        [`${parent}:topic:8`, "", ["SESSION_FILE_MISSING"]],
      ]);
    }
  });

  it("gives the same sessions the same messages in every order of the index", { tags: ["slow"] }, async () => {
    const parent = "agent:main:telegram:group:1";
    const entries = {
      [parent]: { sessionId },
      [`${parent}:topic:7`]: { sessionId },
      [`${parent}:topic:8`]: { sessionId },
      [`${parent}:thread:9`]: { sessionId, sessionFile: `/x/${sessionId}-topic-9.jsonl` },
      "agent:main:slack:channel:c:thread:5": { sessionId: otherId },
    };
    const files = {
      [`agents/main/sessions/${sessionId}.jsonl`]: jsonLines(header, message("a", null, "in the group")),
      [`agents/main/sessions/${sessionId}-topic-7.jsonl`]: jsonLines(header, message("a", null, "in topic 7")),
      [`agents/main/sessions/${sessionId}-topic-9.jsonl`]: jsonLines(header, message("a", null, "in thread 9")),
      [`agents/main/sessions/${sessionId}-topic-10.jsonl`]: jsonLines(header, message("a", null, "in topic 10")),
      // Its entry has no other transcript, and no conversation has it.
      [`agents/main/sessions/${otherId}.jsonl`]: jsonLines({ ...header, id: otherId }, message("a", null, "in Slack")),
    };
    const expected = [
      ["agent:main:slack:channel:c:thread:5", otherId, "in Slack", []],
      [parent, sessionId, "in the group", []],
      [`${parent}:thread:9`, `${sessionId}-2`, "in thread 9", ["SESSION_FILE_FOREIGN"]],
      [`${parent}:topic:10`, `${sessionId}-5`, "in topic 10", ["SESSION_UNINDEXED"]],
      [`${parent}:topic:7`, `${sessionId}-3`, "in topic 7", []],
      [`${parent}:topic:8`, `${sessionId}-4`, "", ["SESSION_FILE_MISSING"]],
    ];
    for (const keys of permutations(Object.keys(entries) as (keyof typeof entries)[])) {
      const index = JSON.stringify(Object.fromEntries(keys.map((key) => [key, entries[key]])));
      using folder = fixtureFolder({ ...files, "agents/main/sessions/sessions.json": index });
      const store = createMemoryStore();
      const sources = await importAll(store, folder.path);
      const said = await Promise.all(
        sources.map(async (source) => [
          source.key,
          source.sessionId,
          JSON.stringify((await recordsOf(store, refOf(source))).at(-1)?.record["message"] ?? null).slice(26, -2),
          source.findings.map(({ code }) => code),
        ]),
      );
      expect(said.toSorted(), keys.join(" ")).toEqual(expected);
      expect(new Set((await importAll(store, folder.path)).map(({ state }) => state))).toEqual(new Set(["unchanged"]));
    }
  });

  it("gives a topic that no index names the key of its conversation, unless that is another session's", async () => {
    const parent = "agent:main:telegram:group:1";
    using folder = fixtureFolder({
      "agents/main/sessions/sessions.json": JSON.stringify({
        [`${parent}:topic:7`]: { sessionId: otherId },
        [parent]: { sessionId },
      }),
      [`agents/main/sessions/${otherId}-topic-7.jsonl`]: plain(otherId),
      [`agents/main/sessions/${sessionId}.jsonl`]: plain(sessionId),
      [`agents/main/sessions/${sessionId}-topic-7.jsonl`]: plain(sessionId),
      [`agents/main/sessions/${sessionId}-topic-a%2Fb.jsonl`]: plain(sessionId),
      [`agents/main/sessions/${thirdId}-topic-7.jsonl`]: plain(thirdId),
    });
    const sources = await importAll(createMemoryStore(), folder.path);
    expect(sources.map(({ key, state }) => [key, state])).toEqual([
      [parent, "imported"],
      [`${parent}:topic:7`, "imported"],
      [`agent:main:import:direct:${sessionId}`, "imported"],
      [`${parent}:topic:a/b`, "imported"],
      [`agent:main:import:direct:${thirdId}`, "imported"],
    ]);
  });

  it("finds what no index names: transcripts, topics, archives; and leaves the rest alone", async () => {
    const archive = `${thirdId}.jsonl.reset.2026-03-01T00-00-00.000Z`;
    using folder = fixtureFolder({
      [`${sessions}/sessions.json`]: JSON.stringify({
        "agent:main:telegram:group:-1:topic:7": { sessionId, sessionFile: `/x/${sessionId}-topic-7.jsonl` },
      }),
      [`${sessions}/${sessionId}-topic-7.jsonl`]: plain(sessionId),
      [`${sessions}/${otherId}.jsonl`]: plain("another-id"),
      [`${sessions}/${archive}`]: plain(thirdId),
      [`${sessions}/${otherId}.jsonl.bak-1-2`]: plain(otherId),
      [`${sessions}/${otherId}.trajectory.jsonl`]: "{}\n",
      [`${sessions}/${otherId}.jsonl.lock`]: "",
      [`${sessions}/notes.md`]: "",
    });
    const store = createMemoryStore();
    const run = async (): Promise<unknown[]> =>
      (await importAll(store, folder.path)).map(({ key, sessionId: id, state, archived, records, findings }) => [
        key,
        id,
        state,
        archived,
        records,
        findings.map(({ code }) => code),
      ]);
    const rest = [
      [null, null, "skipped", false, 0, []],
      [null, null, "skipped", false, 0, []],
    ];
    expect(await run()).toEqual([
      // What was put aside comes first: its key may be its successor's by now.
      [`agent:main:import:direct:${thirdId}`, thirdId, "imported", true, 3, []],
      ["agent:main:telegram:group:-1:topic:7", sessionId, "imported", false, 3, ["SESSION_FILE_FOREIGN"]],
      [`agent:main:import:direct:${otherId}`, otherId, "imported", false, 3, ["SESSION_UNINDEXED", "HEADER_MISMATCH"]],
      rest[0],
      rest[1],
    ]);
    expect((await run()).map((row) => (row as unknown[])[2])).toEqual([
      "unchanged",
      "unchanged",
      "unchanged",
      "skipped",
      "skipped",
    ]);
    const { sessions: archived } = await store.list({ state: "archived" });
    expect(archived.map(({ sessionId: id, entry: kept }) => [id, receiptOf(kept)?.archivedAt])).toEqual([
      [thirdId, "2026-03-01T00:00:00.000Z"],
    ]);
  });

  it("keeps an entry whose transcript is gone, and reads transcripts whose index is broken", async () => {
    using folder = fixtureFolder({
      [`${sessions}/sessions.json`]: JSON.stringify({ "agent:main:main": { sessionId, sendPolicy: "deny" } }),
      [`${sessions}/x.md`]: "",
    });
    const store = createMemoryStore();
    const [source] = await importAll(store, folder.path);
    expect(source).toMatchObject({
      key: "agent:main:main",
      state: "imported",
      records: 0,
      findings: [{ code: "SESSION_FILE_MISSING" }],
    });
    expect((await store.load(refOf(source ?? { agentId: "", key: "" })))?.entry.sendPolicy).toBe("deny");
    folder.write(`${sessions}/sessions.json`, "{broken");
    folder.write(`${sessions}/${otherId}.jsonl`, plain(otherId));
    const again = await importAll(createMemoryStore(), folder.path);
    expect(again.map(({ state, key, findings }) => [state, key, findings[0]?.code])).toEqual([
      ["skipped", null, "INDEX_UNREADABLE"],
      ["imported", `agent:main:import:direct:${otherId}`, "SESSION_UNINDEXED"],
    ]);
  });

  it("a key that belongs to another agent, or is none, gives way to one made of the id", async () => {
    using folder = fixtureFolder({
      "agents/codex/sessions/sessions.json": JSON.stringify({
        "agent:main:main": { sessionId },
        "bad\nkey": { sessionId: otherId },
        x: 5,
      }),
      [`agents/codex/sessions/${sessionId}.jsonl`]: plain(sessionId),
      [`agents/codex/sessions/${otherId}.jsonl`]: plain(otherId),
    });
    const store = createMemoryStore();
    const sources = await importAll(store, folder.path);
    expect(sources.map(({ state, key, findings }) => [state, key, findings[0]?.code])).toEqual([
      ["imported", `agent:codex:import:direct:${sessionId}`, "SESSION_UNINDEXED"],
      ["imported", `agent:codex:import:direct:${otherId}`, "SESSION_UNINDEXED"],
      ["skipped", null, "ENTRY_UNREADABLE"],
    ]);
    expect(
      receiptOf(
        (await store.load({ namespace: "", agentId: "codex", key: `agent:codex:import:direct:${sessionId}` }))
          ?.entry ?? { sessionId },
      )?.key,
    ).toBe("agent:main:main");
  });

  it("one bad file blocks nothing", async () => {
    using folder = fixtureFolder({
      [`${sessions}/${sessionId}.jsonl`]: plain(sessionId),
      [`${sessions}/${thirdId}.jsonl/x`]: "a folder by a transcript's name",
    });
    using secret = fixtureFolder({ "secret.jsonl": plain("secret") });
    symlinkSync(secret.at("secret.jsonl"), folder.at(sessions, `${otherId}.jsonl`));
    folder.write(
      `${sessions}/sessions.json`,
      JSON.stringify({
        "agent:main:up": { sessionId: "../../x", sessionFile: "../../../etc/passwd" },
        "agent:main:folder": { sessionId: thirdId },
      }),
    );
    const store = createMemoryStore();
    const sources = await importAll(store, [folder.path, folder.at("nowhere")]);
    expect(
      sources.map(({ path, state, error, findings }) => [
        path.slice(folder.at(sessions).length + 1).replace(/-[0-9a-f]{16}\./, "-HASH."),
        state,
        error?.code ?? null,
        findings.map(({ code }) => code),
      ]),
    ).toEqual([
      ["import-HASH.jsonl", "imported", null, ["SESSION_FILE_MISSING"]],
      [`${thirdId}.jsonl`, "imported", null, ["SESSION_FILE_MISSING"]],
      [`${sessionId}.jsonl`, "imported", null, ["SESSION_UNINDEXED"]],
      [`${otherId}.jsonl`, "refused", "PATH_UNSAFE", ["FILE_UNREADABLE"]],
      ["", "refused", "FILE_NOT_FOUND", ["FILE_NOT_FOUND"]],
    ]);
  });

  it("what is no regular file is refused and named, and nobody waits for it", async () => {
    using folder = fixtureFolder({ [`${sessions}/${sessionId}.jsonl`]: plain(sessionId) });
    execFileSync("sh", ["-c", 'mkfifo "$1"', "sh", folder.at(sessions, `${otherId}.jsonl`)]);
    const sources = await importAll(createMemoryStore(), folder.path);
    expect(sources.map(({ state, error, findings }) => [state, error?.code, findings[0]?.code])).toEqual([
      ["imported", undefined, undefined],
      ["refused", "FILE_UNREADABLE", "FILE_UNREADABLE"],
    ]);
  });

  it("never changes the source", async () => {
    using folder = fixtureFolder({
      [`${sessions}/sessions.json`]: JSON.stringify({ "agent:main:main": entry }),
      [`${sessions}/${sessionId}.jsonl`]: plain(sessionId) + "{torn",
      [`${sessions}/${otherId}.jsonl.reset.x`]: plain(otherId),
    });
    const before = folder.state();
    const store = createMemoryStore();
    await importAll(store, folder.path);
    await importAll(store, folder.path);
    expect(folder.state()).toEqual(before);
  });
});

function permutations<Item>(items: readonly Item[]): readonly (readonly Item[])[] {
  if (items.length < 2) return [items];
  return items.flatMap((item, at) => permutations(items.toSpliced(at, 1)).map((rest) => [item, ...rest]));
}
