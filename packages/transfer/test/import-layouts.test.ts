import { describe, expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import {
  exported,
  fixtureFolder,
  header,
  importAll,
  jsonLines,
  message,
  recordsOf,
  refOf,
  sessionId,
} from "./fixture-folder.ts";

const otherId = "1b83cd1e-54ce-4a39-9089-188d2669ead4";
const plain = (id: string): string => jsonLines({ ...header, id }, message("a", null), message("b", "a"));

describe("importing other layouts", () => {
  it("claw0 with the index one level up, by id [C05]", async () => {
    const index = {
      abc123: { label: "my-project", created_at: 1735689600.5, last_active: 1735689605.5, message_count: 2 },
    };
    const flat = jsonLines(
      { type: "user", content: "Hello", ts: 1735689600.5 },
      { type: "assistant", content: [{ type: "text", text: "Hi" }], ts: 1735689605.5 },
    );
    using folder = fixtureFolder({
      "workspace/.sessions/agents/luna/sessions.json": JSON.stringify(index),
      "workspace/.sessions/agents/luna/sessions/abc123.jsonl": flat,
      "workspace/.sessions/agents/luna/sessions/empty.jsonl": "",
    });
    const store = createMemoryStore();
    const sources = await importAll(store, folder.at("workspace"));
    expect(sources.map(({ key, format, state, records }) => [key, format, state, records])).toEqual([
      ["agent:luna:import:direct:abc123", "claw0", "imported", 2],
      ["agent:luna:import:direct:empty", "claw0", "imported", 0],
    ]);
    const state = await store.load({ namespace: "", agentId: "luna", key: "agent:luna:import:direct:abc123" });
    expect(state?.entry).toMatchObject({
      sessionId: "abc123",
      label: "my-project",
      message_count: 2,
      updatedAt: 1735689605500,
    });
    expect(await exported(store, refOf(sources[0] ?? { agentId: "", key: "" }), "jsonl")).toBe(flat);
    expect((await importAll(store, folder.at("workspace/.sessions/agents"))).map(({ state: again }) => again)).toEqual([
      "unchanged",
      "unchanged",
    ]);
  });

  it("claw0 with transcripts in a folder of their own, by key [C05] [C06]", async () => {
    const meta = {
      session_key: "main:cli:user",
      session_id: "abc123",
      created_at: "2025-01-01T00:00:00+00:00",
      updated_at: "2025-01-01T00:00:05+00:00",
      message_count: 1,
      transcript_file: "main_cli_user_abc123.jsonl",
    };
    const transcript = (id: string, key: string): string =>
      jsonLines(
        { type: "session", id, key, created: "2025-01-01T00:00:00Z" },
        { type: "user", content: "hello", ts: "2025-01-01T00:00:01Z" },
      );
    using folder = fixtureFolder({
      ".sessions/sessions.json": JSON.stringify({ "main:cli:user": meta }),
      ".sessions/transcripts/main_cli_user_abc123.jsonl": transcript("abc123", "main:cli:user"),
      ".sessions/transcripts/luna_cli_user_def456.jsonl": transcript("def456", "luna:cli:user"),
    });
    const store = createMemoryStore();
    const sources = await importAll(store, folder.path);
    expect(sources.map(({ key, agentId, sessionId: id, records }) => [key, agentId, id, records])).toEqual([
      ["main:cli:user", "main", "abc123", 2],
      ["luna:cli:user", "luna", "def456", 2],
    ]);
    expect((await store.load(refOf(sources[0] ?? { agentId: "", key: "" })))?.entry).toMatchObject({
      created_at: meta.created_at,
      updatedAt: 1735689605000,
    });
  });

  it("pi: in its own folder also below one with the name of OpenClaw's agents", async () => {
    using folder = fixtureFolder({
      [`agents/ada/.pi/agent/sessions/--w--/2026-02-01T16-10-50-414Z_${sessionId}.jsonl`]: jsonLines(
        header,
        message("a", null),
      ),
    });
    const [source] = await importAll(createMemoryStore(), folder.at("agents/ada/.pi"));
    expect([source?.format, source?.agentId, source?.error]).toEqual(["pi", "main", null]);
  });

  it("pi: folders by working directory, names with the time first", async () => {
    const name = `--home-u-project--/2026-02-01T16-10-50-414Z_${sessionId}.jsonl`;
    using folder = fixtureFolder({ [`sessions/${name}`]: plain(sessionId), "sessions/--home-u-other--/notes.txt": "" });
    for (const path of [
      folder.path,
      folder.at("sessions"),
      folder.at("sessions/--home-u-project--"),
      folder.at("sessions", name),
    ]) {
      const sources = await importAll(createMemoryStore(), path);
      expect(sources).toMatchObject([
        {
          format: "pi",
          key: `agent:main:import:direct:${sessionId}`,
          sessionId,
          state: "imported",
          records: 3,
          findings: [],
        },
      ]);
    }
  });

  it("a lone file: by its header, by the key that is given, under a free key", async () => {
    using folder = fixtureFolder({
      "mine.jsonl": plain("from-the-header"),
      "copy.jsonl": jsonLines({ ...header, id: "from-the-header" }, message("z", null)),
      "nameless.jsonl": jsonLines(message("a", null)),
    });
    const store = createMemoryStore();
    const one = async (name: string, key?: string): Promise<unknown[]> => {
      const [source] = await importAll(store, folder.at(name), key === undefined ? {} : { key });
      return [source?.key, source?.sessionId, source?.state, source?.error?.code];
    };
    expect(await one("mine.jsonl")).toEqual([
      "agent:main:import:direct:from-the-header",
      "from-the-header",
      "imported",
      undefined,
    ]);
    expect(await one("copy.jsonl")).toEqual([
      "agent:main:import:direct:from-the-header-2",
      "from-the-header-2",
      "imported",
      undefined,
    ]);
    expect(await one("copy.jsonl")).toEqual([
      "agent:main:import:direct:from-the-header-2",
      "from-the-header-2",
      "unchanged",
      undefined,
    ]);
    expect(await one("nameless.jsonl")).toEqual([
      "agent:main:import:direct:nameless",
      "nameless",
      "imported",
      undefined,
    ]);
    expect(await one("mine.jsonl", "agent:luna:cli:direct:x")).toEqual([
      "agent:luna:cli:direct:x",
      "from-the-header",
      "imported",
      undefined,
    ]);
    expect(await one("copy.jsonl", "agent:luna:cli:direct:x")).toEqual([
      "agent:luna:cli:direct:x",
      "from-the-header",
      "refused",
      "SESSION_EXISTS",
    ]);
    await expect(importAll(store, folder.path, { key: "agent:main:one" })).rejects.toMatchObject({
      code: "INPUT_INVALID",
    });
  });

  it("what is no transcript is refused with its name", async () => {
    using folder = fixtureFolder({ "a.jsonl": '{"type":"unheard_of","payload":{}}\n', "b/c.txt": "x" });
    expect(
      (await importAll(createMemoryStore(), [folder.at("a.jsonl"), folder.at("b")])).map(({ state, error }) => [
        state,
        error?.code,
      ]),
    ).toEqual([
      ["refused", "FORMAT_UNKNOWN"],
      ["refused", "FORMAT_UNKNOWN"],
    ]);
    const [forced] = await importAll(createMemoryStore(), folder.at("a.jsonl"), { from: "pi" });
    expect(forced).toMatchObject({ state: "imported", records: 1 });
  });

  it("the records keep their lines, ids and order", async () => {
    const text = jsonLines(
      header,
      message("a", null),
      {
        type: "checkpoint",
        id: "c",
        parentId: "a",
        timestamp: "2026-02-01T16:10:52.000Z",
        checkpoint: { summary: "s" },
      },
      {
        type: "compaction",
        id: "d",
        parentId: "a",
        timestamp: "2026-02-01T16:10:52.000Z",
        summary: "s",
        firstKeptEntryId: "a",
        tokensBefore: 5,
      },
      { type: "later", id: "e", parentId: "d", timestamp: "t" },
    );
    using folder = fixtureFolder({ "x.jsonl": text });
    const store = createMemoryStore();
    const [source] = await importAll(store, folder.at("x.jsonl"));
    const records = await recordsOf(store, refOf(source ?? { agentId: "", key: "" }));
    expect(records.map(({ seq, id, source: line }) => [seq, id, line])).toEqual(
      text
        .trimEnd()
        .split("\n")
        .map((line, index) => [index + 1, [`header:${sessionId}`, "a", "c", "d", "e"][index], line]),
    );
  });

  it("all programs in a copy of a user's home, and each by any of the folders above its sessions", async () => {
    const claude = jsonLines({
      type: "user",
      uuid: "u",
      parentUuid: null,
      sessionId: otherId,
      message: { role: "user", content: "hello" },
    });
    const time = { created: 1, completed: 2 };
    const task = "tasks/1700000000000/api_conversation_history.json";
    const storage = "share/opencode/storage";
    using folder = fixtureFolder({
      [`home/.claude/projects/-x/${otherId}.jsonl`]: claude,
      "home/.claude/settings.json": "{}",
      [`home/.local/${storage}/session/p/ses_1.json`]: JSON.stringify({ id: "ses_1", time }),
      [`home/.local/${storage}/message/ses_1/m1.json`]: JSON.stringify({
        id: "m1",
        role: "user",
        sessionID: "ses_1",
        time,
      }),
      [`home/.local/${storage}/part/m1/p1.json`]: JSON.stringify({ id: "p1", type: "text", text: "hello" }),
      [`home/.openclaw/agents/main/sessions/${sessionId}.jsonl`]: plain(sessionId),
      "home/.pi/agent/sessions/--x--/2026-01-01T12-00-00-000Z_one.jsonl": plain("one"),
      [`home/copied/${task}`]: JSON.stringify([{ role: "user", content: "hello", ts: 1 }]),
      "home/notes.jsonl": "{}",
      "without/.openclaw/openclaw.json": "{}",
      "without/.pi/agent/settings.json": "{}",
    });
    const idsAt = async (path: string): Promise<readonly unknown[]> =>
      (await importAll(createMemoryStore(), folder.at(path))).map(({ sessionId: id, state }) => [id, state]);
    const [claudeCode, opencode] = [
      [otherId, "imported"],
      ["ses_1", "imported"],
    ];
    const [openclaw, pi] = [
      [sessionId, "imported"],
      ["one", "imported"],
    ];
    expect(await idsAt("home")).toEqual([claudeCode, opencode, openclaw, pi]);
    expect(await idsAt("home/.claude")).toEqual([claudeCode]);
    for (const path of [".local", ".local/share", ".local/share/opencode", `.local/${storage}`])
      expect([path, await idsAt(`home/${path}`)]).toEqual([path, [opencode]]);
    for (const path of ["copied", "copied/tasks", "copied/tasks/1700000000000", `copied/${task}`])
      expect([path, await idsAt(`home/${path}`)]).toEqual([path, [["1700000000000", "imported"]]]);
    expect(await idsAt("without")).toEqual([[null, "refused"]]);
  });

  it("keeps a line whose message is none, and reads the others", async () => {
    const odd = [null, 5, "x", undefined].map((value, at) => ({ ...message(`o${at}`, "a"), message: value }));
    const text = jsonLines(header, message("a", null, "hello"), ...odd, message("b", "o3", "bye"));
    using folder = fixtureFolder({ "first.jsonl": jsonLines(header, ...odd), "s.jsonl": text });
    const store = createMemoryStore();
    const [source] = await importAll(store, folder.at("s.jsonl"));
    expect(source).toMatchObject({ state: "imported", records: 7, lost: [] });
    expect(await exported(store, refOf(source ?? { agentId: "", key: "" }), "jsonl")).toBe(text);
    expect((await importAll(createMemoryStore(), folder.at("first.jsonl")))[0]?.state).toBe("imported");
  });

  it("pi by any of the folders above its sessions", async () => {
    using folder = fixtureFolder({ ".pi/agent/sessions/--home-u--/2026-01-01T12-00-00-000Z_one.jsonl": plain("one") });
    for (const path of [".pi", ".pi/agent", ".pi/agent/sessions", ".pi/agent/sessions/--home-u--"]) {
      const [source, ...others] = await importAll(createMemoryStore(), folder.at(path));
      expect([path, source?.format, source?.sessionId, others.length]).toEqual([path, "pi", "one", 0]);
    }
  });
});
