import { redactRecords, type SessionEntry, type SessionStore } from "@throughline/core";
import { updateEntry } from "@throughline/core/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import { fixtureFolder, header, importAll, jsonLines, message, refOf, sessionId } from "./fixture-folder.ts";

const piFile = "pi/--home-u-project--/2026-02-01T16-10-50-414Z_0b83cd1e-54ce-4a39-9089-188d2669ead4.jsonl";

function named(id: string, parentId: string, name: string): object {
  return { type: "session_info", id, parentId, timestamp: "2026-02-01T16:10:52.000Z", name };
}

async function entryOf(store: SessionStore, source: Parameters<typeof refOf>[0] | undefined): Promise<SessionEntry> {
  const state = source === undefined ? null : await store.load(refOf(source));
  if (state === null) throw new Error("there is no session");
  return state.entry;
}

describe("the name of an imported session", () => {
  it("is a title by rules where the source states none, and its folder is that of the header", async () => {
    using folder = fixtureFolder();
    const store = createMemoryStore();
    const path = folder.write(
      piFile,
      jsonLines(header, message("a1", null, "hi"), message("a2", "a1", "Can you fix the build?")),
    );
    const [source] = await importAll(store, path);
    expect(await entryOf(store, source)).toMatchObject({
      title: "Fix the build",
      titleBy: "rules",
      cwd: "/home/u/project",
    });
  });

  it("is the newest that pi's /name gave, and follows the source until a person renames it here", async () => {
    using folder = fixtureFolder();
    const store = createMemoryStore();
    const lines = [header, message("a1", null, "Fix the build"), named("n1", "a1", "Build"), named("n2", "a1", "CI")];
    const path = folder.write(piFile, jsonLines(...lines));
    const [source] = await importAll(store, path);
    expect((await entryOf(store, source)).label).toBe("CI");
    lines.push(message("a2", "a1", "More"), named("n3", "a2", "Pipelines"));
    folder.write(piFile, jsonLines(...lines));
    expect((await importAll(store, path))[0]).toMatchObject({ state: "grown", records: 2 });
    expect((await entryOf(store, source)).label).toBe("Pipelines");
    if (source === undefined) throw new Error("nothing was imported");
    await updateEntry(store, refOf(source), (entry) => ({ ...entry, label: "mine" }));
    folder.write(piFile, jsonLines(...lines, named("n4", "a2", "Another")));
    await importAll(store, path);
    expect((await entryOf(store, source)).label).toBe("mine");
  });

  it("is not made again of words that were redacted", async () => {
    using folder = fixtureFolder();
    const store = createMemoryStore();
    const lines = [header, message("a1", null, "The password of the vault"), message("a2", "a1", "ok")];
    const path = folder.write(piFile, jsonLines(...lines));
    const [source] = await importAll(store, path);
    if (source === undefined) throw new Error("nothing was imported");
    expect((await entryOf(store, source)).title).toBe("The password of the vault");
    await redactRecords(store, refOf(source), ["a1"], { reason: "asked for" });
    folder.write(piFile, jsonLines(...lines, message("a3", "a2", "ok")));
    expect((await importAll(store, path))[0]).toMatchObject({ state: "grown" });
    expect((await entryOf(store, source)).title).toBeUndefined();
  });

  it("of an index of OpenClaw goes before what its lines say", async () => {
    using folder = fixtureFolder();
    const store = createMemoryStore();
    const sessions = "state/agents/main/sessions";
    const entry = { sessionId, updatedAt: 1_770_000_000_000, label: "Mine" };
    folder.write(`${sessions}/sessions.json`, JSON.stringify({ "agent:main:main": entry }));
    folder.write(
      `${sessions}/${sessionId}.jsonl`,
      jsonLines(header, message("a1", null, "Fix it"), named("n", "a1", "X")),
    );
    const [source] = await importAll(store, folder.at("state"));
    expect(await entryOf(store, source)).toMatchObject({ label: "Mine", title: "Fix it", titleBy: "rules" });
  });
});
