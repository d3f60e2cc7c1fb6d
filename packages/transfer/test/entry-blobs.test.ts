import { loadEntryBlobs, setBlobsAside } from "@throughline/core/internal";
import type { SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { copySessions } from "@throughline/transfer";
import { exportAll } from "../src/export-files.ts";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { aroundCalls } from "@throughline/test-kit";
import { exported, fixtureFolder, header, importAll, jsonLines, message, sessionId } from "./fixture-folder.ts";

const ref = { namespace: "", agentId: "main", key: "agent:main:main" };
const sessions = "state/agents/main/sessions";
/** What a careless copy would lose. */
const skillsSnapshot = {
  prompt: 'é\u2028 \\ " '.repeat(4000),
  version: 3,
  resolvedSkills: [{ name: "a", none: null }],
};
const systemPromptReport = {
  source: "run",
  sections: Array.from({ length: 50 }, (_, at) => ({ name: `s${at}`, at: 1.5e-7 })),
};
const entry = { sessionId, updatedAt: 1_770_000_000_000, skillsSnapshot, label: "Mine", systemPromptReport, odd: [1] };
const transcript = jsonLines(header, message("a1", null), message("a2", "a1"), "not json", {
  type: "leaf",
  id: "l",
  targetId: "a1",
});

function stateFolder(text: string | null = transcript): ReturnType<typeof fixtureFolder> {
  const folder = fixtureFolder({ [`${sessions}/sessions.json`]: JSON.stringify({ [ref.key]: entry }) });
  if (text !== null) folder.write(`${sessions}/${sessionId}.jsonl`, text);
  return folder;
}

async function stored(store: SessionStore): Promise<NonNullable<Awaited<ReturnType<SessionStore["load"]>>>> {
  const state = await store.load(ref);
  if (state === null) throw new Error("there is no session");
  return state;
}

/** What an import adds to the entry beside the receipt: the folder of the header, and a title by rules. */
const added = { cwd: "/home/u/project", title: "a1", titleBy: "rules" };

function withoutAdded(entryOfImport: Readonly<Record<string, unknown>>): unknown {
  const { importedFrom: _receipt, cwd, title, titleBy, ...fields } = entryOfImport;
  expect({ cwd, title, titleBy }).toEqual(added);
  return fields;
}

/** Fails every write once so many have been made, as if the process had been killed. */
function endingAfter(store: SessionStore, writes: number): SessionStore {
  let left = writes;
  return aroundCalls(store, ({ name, run }) => {
    if (["append", "save", "move"].includes(name) && left-- <= 0) throw new Error("killed");
    return run();
  });
}

describe("large fields of an entry that is imported", () => {
  it("lie aside as when the session is saved by hand, and are loaded as they were", async () => {
    using folder = stateFolder();
    const store = createMemoryStore();
    const [source] = await importAll(store, folder.at("state"));
    expect(source).toMatchObject({ state: "imported", lines: 5, records: 5, lost: [] });
    const state = await stored(store);
    const byHand = createMemoryStore();
    await byHand.save(ref, entry, { ifRevision: null });
    const saved = await setBlobsAside(byHand, ref);
    // Behind the header, which a store in files has at the beginning.
    expect(JSON.stringify(withoutAdded(state.entry)).replaceAll(/"seq":\d/g, "")).toBe(
      JSON.stringify(saved.entry).replaceAll(/"seq":\d/g, ""),
    );
    expect(Object.keys(state.entry)).toEqual(expect.arrayContaining(["blobsAside", "label", "odd"]));
    expect(JSON.stringify(state.entry).length).toBeLessThan(1500);
    expect(JSON.stringify(await loadEntryBlobs(store, state))).toBe(
      JSON.stringify({ skillsSnapshot, systemPromptReport }),
    );
    const [again] = await importAll(store, folder.at("state"));
    expect(again).toMatchObject({ state: "unchanged", lines: 0, records: 0 });
    expect((await stored(store)).head.lastSeq).toBe(7);
  });

  it("are in no export but the index's, which has all of the entry again", async () => {
    using folder = stateFolder();
    const store = createMemoryStore();
    await importAll(store, folder.at("state"));
    expect(await exported(store, ref, "jsonl")).toBe(Buffer.from(transcript).toString("latin1"));
    for (const to of ["jsonl", "openclaw", "pi"] as const) {
      const files = await Array.fromAsync(exportAll(store, folder.at(to), { to }));
      expect(files[0]?.records).toBe(to === "jsonl" ? 5 : 4);
      expect(files.flatMap(({ remarks }) => remarks.filter(({ reason }) => reason.includes("entry")))).toEqual([]);
      if (to === "pi") continue;
      const text = readFileSync(folder.at(to, "agents/main/sessions/sessions.json"), "utf8");
      const back = (JSON.parse(text) as Record<string, Record<string, unknown>>)[ref.key] ?? {};
      const { sessionFile: _path, ...fields } = back;
      expect(fields).toEqual({ ...entry, ...added });
      for (const field of ["skillsSnapshot", "systemPromptReport"] as const)
        expect(JSON.stringify(back[field])).toBe(JSON.stringify(entry[field]));
    }
  });

  it("stay where they are when the source grows, when the session goes on and when it is copied", async () => {
    using folder = stateFolder();
    const store = createMemoryStore();
    await importAll(store, folder.at("state"));
    const grown = transcript + jsonLines(message("a3", "a1"), message("a4", "a3"));
    folder.write(`${sessions}/${sessionId}.jsonl`, grown);
    const [source] = await importAll(store, folder.at("state"));
    expect(source).toMatchObject({ state: "grown", records: 2 });
    const other = createMemoryStore();
    await Array.fromAsync(copySessions(store, other));
    for (const each of [store, other]) {
      expect(await exported(each, ref, "jsonl")).toBe(Buffer.from(grown).toString("latin1"));
      expect(await loadEntryBlobs(each, await stored(each))).toEqual({ skillsSnapshot, systemPromptReport });
    }
    // A last line without a line feed has none when it comes out, unless another follows.
    const open = grown + JSON.stringify(message("a5", "a4"));
    folder.write(`${sessions}/${sessionId}.jsonl`, open);
    await importAll(store, folder.at("state"));
    expect(await exported(store, ref, "jsonl")).toBe(Buffer.from(open).toString("latin1"));
    await store.append(ref, [{ type: "message", message: { role: "user", content: "more" } }]);
    expect((await exported(store, ref, "jsonl")).startsWith(`${Buffer.from(open).toString("latin1")}\n{`)).toBe(true);
  });

  it("are there whenever the import was cut off, once, also of a session without a transcript", async () => {
    for (const text of [transcript, "", null]) {
      for (const writes of [0, 1, 2]) {
        using folder = stateFolder(text);
        const store = createMemoryStore();
        await importAll(endingAfter(store, writes), folder.at("state")).catch(() => []);
        const [source] = await importAll(store, folder.at("state"));
        expect(source?.state).toMatch(/^(imported|unchanged)$/);
        const state = await stored(store);
        expect(state.head.lastSeq).toBe(text === transcript ? 7 : 2);
        expect(await loadEntryBlobs(store, state)).toEqual({ skillsSnapshot, systemPromptReport });
        const bytes = text === null || text === "" ? "" : Buffer.from(transcript).toString("latin1");
        expect(await exported(store, ref, "jsonl")).toBe(bytes);
      }
    }
  });

  it("leave the header where it is in a store of files, also where the transcript has none", async () => {
    for (const [text, first] of [
      [transcript, `${JSON.stringify(header)}\n`.length],
      [jsonLines(message("a1", null)), 0],
      [jsonLines(header), 0],
    ] as const) {
      using folder = stateFolder(text);
      await using store = createJsonlStore({ root: folder.at("store"), create: true });
      await importAll(store, folder.at("state"));
      const bytes = readFileSync(folder.at("store/agents/main/sessions", `${sessionId}.jsonl`), "utf8");
      expect(JSON.parse(bytes.slice(0, bytes.indexOf("\n")))).toMatchObject({ type: "session", id: sessionId });
      if (first > 0) expect(JSON.parse(bytes.slice(0, bytes.indexOf("\n")))).toMatchObject(header);
      expect(await exported(store, ref, "jsonl")).toBe(text);
      expect(await loadEntryBlobs(store, await stored(store))).toEqual({ skillsSnapshot, systemPromptReport });
      // A store of ours that is imported keeps seq, and with them the places.
      const other = createMemoryStore();
      await store.close();
      await importAll(other, folder.at("store"));
      expect(await exported(other, ref, "jsonl")).toBe(text);
      expect(await loadEntryBlobs(other, await stored(other))).toEqual({ skillsSnapshot, systemPromptReport });
    }
  });

  it("are counted by nobody in a dry run, and one larger than a commit takes stays in the entry", async () => {
    const huge = { prompt: "x".repeat(200_000) };
    using folder = fixtureFolder({
      [`${sessions}/sessions.json`]: JSON.stringify({ [ref.key]: { ...entry, skillsSnapshot: huge } }),
      [`${sessions}/${sessionId}.jsonl`]: transcript,
    });
    const store = createMemoryStore({ limits: { recordBytes: 1_000_000, batchBytes: 1_200_000 } });
    const [dry] = await importAll(store, folder.at("state"), { dryRun: true });
    expect(dry).toMatchObject({ state: "imported", records: 5 });
    await importAll(store, folder.at("state"));
    const state = await stored(store);
    expect(state.entry["skillsSnapshot"]).toEqual(huge);
    expect(await loadEntryBlobs(store, state)).toEqual({ skillsSnapshot: huge, systemPromptReport });
  });
});
