import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { SessionRef, SessionStore } from "@throughline/core";
import { updateEntry } from "@throughline/core/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import { exportSession } from "@throughline/transfer";
import { exportToFile, handOff } from "@throughline/transfer/internal";
import type { ExportFormat } from "../src/export-types.ts";
import type { HandOffTarget } from "../src/hand-off.ts";
import {
  exported,
  fixtureFolder,
  type FixtureFolder,
  header,
  importAll,
  jsonLines,
  message,
  refOf,
} from "./fixture-folder.ts";

const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:main" };

async function named(label: string | null): Promise<SessionStore> {
  const store = createMemoryStore();
  await store.save(ref, { sessionId: "0b83cd1e-54ce-4a39-9089-188d2669ead4" }, { ifRevision: null });
  await store.append(ref, [{ type: "message", message: { role: "user", content: "Hi" } }]);
  if (label !== null) await updateEntry(store, ref, (entry) => ({ ...entry, label }));
  return store;
}

async function textOf(store: SessionStore, at: SessionRef, to: ExportFormat): Promise<string> {
  const pieces = await Array.fromAsync(exportSession(store, at, { to }));
  return Buffer.concat(pieces).toString();
}

async function handedTo(to: HandOffTarget, store: SessionStore, folder: FixtureFolder): ReturnType<typeof handOff> {
  return handOff(store, ref, { to, environment: {}, userHome: folder.at("."), workingDirectory: folder.at(".") });
}

describe("a name that a person gave a session", () => {
  it.each(["pi", "claude-code", "codex"] as const)("comes back from a hand-off to %s", async (to) => {
    using folder = fixtureFolder();
    await using store = await named("Files");
    const { path, sessionId, remarks } = await handedTo(to, store, folder);
    expect(remarks.map(({ kind }) => kind)).not.toContain("name of the session");
    if (to === "codex") {
      const [line] = readFileSync(folder.at(".codex/session_index.jsonl"), "utf8").trimEnd().split("\n");
      expect(JSON.parse(line ?? "")).toMatchObject({ id: sessionId, thread_name: "Files" });
    }
    await using other = createMemoryStore();
    const [source] = await importAll(other, path);
    expect((await other.load(refOf(source!)))?.entry["label"]).toBe("Files");
  });

  it("is a line behind those of other sessions in Codex's list, and no line without a name", async () => {
    using folder = fixtureFolder();
    const list = folder.at(".codex/session_index.jsonl");
    mkdirSync(dirname(list), { recursive: true });
    const before = `${JSON.stringify({ id: "1", thread_name: "Mine", updated_at: "2026-01-01T00:00:00Z" })}\n`;
    writeFileSync(list, before);
    await using unnamed = await named(null);
    await handedTo("codex", unnamed, folder);
    expect(readFileSync(list, "utf8")).toBe(before);
    await using store = await named("Files");
    await handedTo("codex", store, folder);
    expect(readFileSync(list, "utf8").startsWith(before)).toBe(true);
    expect(readFileSync(list, "utf8").split("\n")).toHaveLength(3);
  });

  it("is reported as left out where Codex's list cannot be written", async () => {
    using folder = fixtureFolder();
    mkdirSync(folder.at(".codex"));
    folder.write("elsewhere", "");
    symlinkSync(folder.at("elsewhere"), folder.at(".codex/session_index.jsonl"));
    await using store = await named("Files");
    const { remarks } = await handedTo("codex", store, folder);
    expect(remarks.map(({ what, kind }) => [what, kind])).toEqual([["left-out", "name of the session"]]);
    expect(readFileSync(folder.at("elsewhere"), "utf8")).toBe("");
  });

  it("is a row behind the others for pi, which continues from the same message", async () => {
    const rows = [header, message("a", null), message("b", "a")];
    using folder = fixtureFolder({ "s.jsonl": jsonLines(...rows) });
    await using store = createMemoryStore();
    const [source] = await importAll(store, folder.at("s.jsonl"));
    const at = refOf(source!);
    await updateEntry(store, at, (entry) => ({ ...entry, label: "Mine" }));
    const text = await textOf(store, at, "pi");
    expect(text.startsWith(jsonLines(...rows))).toBe(true);
    const last = JSON.parse(text.trimEnd().split("\n").at(-1) ?? "") as Record<string, unknown>;
    expect(last).toMatchObject({ type: "session_info", name: "Mine", parentId: "b" });
    const path = folder.at("again.jsonl");
    await exportToFile(store, at, path, { to: "pi" });
    await using other = createMemoryStore();
    const [again] = await importAll(other, path);
    const state = await other.load(refOf(again!));
    expect([state?.entry["label"], state?.head.headId]).toEqual(["Mine", "b"]);
  });

  it("adds nothing to a file that has it", async () => {
    const info = { type: "session_info", id: "i1", parentId: "a", timestamp: "2026-01-01T00:00:01.000Z", name: "Mine" };
    using folder = fixtureFolder({ "s.jsonl": jsonLines(header, message("a", null), info) });
    await using store = createMemoryStore();
    const [source] = await importAll(store, folder.at("s.jsonl"));
    expect((await store.load(refOf(source!)))?.entry["label"]).toBe("Mine");
    expect(await exported(store, refOf(source!), "pi")).toBe(readFileSync(folder.at("s.jsonl"), "latin1"));
  });

  const claude = {
    type: "user",
    uuid: "818863f4-ca31-451f-af86-000000000001",
    parentUuid: null,
    sessionId: "54519cf2-0636-4c90-924d-6a77bc43ad98",
    timestamp: "2026-01-01T00:00:00.000Z",
    message: { role: "user", content: "Hi" },
  };
  const { sessionId } = claude;

  it.each([
    ["a person gave it there", [{ type: "custom-title", customTitle: "There", sessionId }], "There"],
    ["an agent has it", [{ type: "agent-name", agentName: "Bot", sessionId }], "Bot"],
    ["the file has none", [], undefined],
  ] as const)("is a line behind Claude Code's own once it is another one: %s", async (_what, names, label) => {
    const text = jsonLines(claude, ...names);
    using folder = fixtureFolder({ [`${sessionId}.jsonl`]: text });
    await using store = createMemoryStore();
    const [source] = await importAll(store, folder.at(`${sessionId}.jsonl`));
    const at = refOf(source!);
    expect((await store.load(at))?.entry["label"]).toBe(label);
    expect(await textOf(store, at, "claude-code")).toBe(text);
    await updateEntry(store, at, (entry) => ({ ...entry, label: "Here" }));
    const added = { type: "custom-title", customTitle: "Here", sessionId };
    expect(await textOf(store, at, "claude-code")).toBe(text + jsonLines(added));
  });
});
