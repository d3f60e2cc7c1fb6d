import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { agentOfSessionsDir, archiveFileName, classifySessionFile } from "../src/transcript-file-name.ts";
import {
  joinPath,
  resolveDefaultStorePath,
  resolveSessionFile,
  resolveSessionsDir,
  resolveStorePath,
  resolveTranscriptPath,
} from "../src/transcript-paths.ts";
import { readSessionIndex } from "../src/session-index.ts";
import { readSessionsJson, sessionsJsonPieces } from "../src/sessions-json.ts";

const id = "9b83cd1e-54ce-4a39-9089-188d2669ead4";
const stateDir = "/home/u/.openclaw";

function written(entries: Iterable<readonly [key: string, entry: unknown]>): string {
  return [...sessionsJsonPieces(entries)].join("");
}

describe("sessions.json", () => {
  it("is read in order with every field, and written back byte for byte", () => {
    const text = `{
  "agent:main:main": {
    "sessionId": "${id}",
    "updatedAt": 1706803200000,
    "sessionFile": "/else/where/${id}.jsonl",
    "compactionCount": 2,
    "totalTokens": 12,
    "unknownField": {
      "a": [
        1,
        {}
      ]
    },
    "text": "two\\nlines"
  },
  "__proto__": {
    "sessionId": "x",
    "__proto__": {
      "polluted": true
    }
  }
}`;
    const { entries, unreadable, findings } = readSessionsJson(text);
    expect(findings).toEqual([]);
    expect(unreadable.size).toBe(0);
    expect([...(entries?.keys() ?? [])]).toEqual(["agent:main:main", "__proto__"]);
    expect(entries?.get("__proto__")?.["polluted"]).toBe(undefined);
    expect(written(entries ?? [])).toBe(text);
  });

  it("keeps the writer's order for keys that look like numbers", () => {
    const text = written([
      ["b", { sessionId: "1" }],
      ["12", { sessionId: "2" }],
    ]);
    expect(text.indexOf('"b"')).toBeLessThan(text.indexOf('"12"'));
    expect(JSON.parse(text)).toEqual({ b: { sessionId: "1" }, "12": { sessionId: "2" } });
    expect(written([])).toBe("{}");
  });

  it.each([[""], ["{"], ["[]"], ["null"], ['{"a":{"sessionId":"x"}'], ["\0\0\0"]])(
    "an unreadable index is a finding and never an empty one: %j",
    (text) => {
      const read = readSessionsJson(text, { path: "/x/sessions.json" });
      expect(read.entries).toBe(null);
      expect(read.findings).toMatchObject([{ code: "INDEX_UNREADABLE", severity: "error", path: "/x/sessions.json" }]);
      expect(readSessionIndex(text)).toMatchObject({
        shape: null,
        sessions: [],
        findings: [{ code: "INDEX_UNREADABLE" }],
      });
    },
  );

  it("keeps what is no entry aside and says so", () => {
    const { entries, unreadable, findings } = readSessionsJson(
      '{"a":{"sessionId":"x"},"b":null,"c":{"sessionId":5},"d":[]}',
    );
    expect([...(entries?.keys() ?? [])]).toEqual(["a"]);
    expect([...unreadable]).toEqual([
      ["b", null],
      ["c", { sessionId: 5 }],
      ["d", []],
    ]);
    expect(findings.map(({ code, key }) => [code, key])).toEqual([
      ["ENTRY_UNREADABLE", "b"],
      ["ENTRY_UNREADABLE", "c"],
      ["ENTRY_UNREADABLE", "d"],
    ]);
  });

  it("of any JSON comes back as it was", () => {
    const name = fc.string().filter((text) => !text.includes("\\"));
    const entry = fc.dictionary(name, fc.jsonValue()).map((fields) => ({ ...fields, sessionId: "x" }));
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(
            name.filter((key) => !/^\d+$/.test(key)),
            entry,
          ),
        ),
        (pairs) => {
          const index = new Map(pairs.map(([key, value]) => [key, JSON.parse(JSON.stringify(value)) as unknown]));
          const read = readSessionsJson(written(index));
          expect([...(read.entries ?? [])]).toEqual([...index]);
        },
      ),
    );
  });
});

describe("the tutorials' indexes", () => {
  it("keyed by session key, in snake case", () => {
    const entry = {
      session_key: "main:cli:user",
      session_id: "abc123",
      created_at: "2025-01-01T00:00:00+00:00",
      updated_at: "2025-01-01T00:00:05+00:00",
      message_count: 4,
      transcript_file: "main_cli_user_abc123.jsonl",
    };
    const { shape, sessions, findings } = readSessionIndex(JSON.stringify({ "main:cli:user": entry }));
    expect([shape, findings]).toEqual(["claw0-keyed", []]);
    expect(sessions).toEqual([
      {
        key: "main:cli:user",
        sessionId: "abc123",
        file: "main_cli_user_abc123.jsonl",
        entry: { ...entry, sessionId: "abc123", updatedAt: 1735689605000 },
      },
    ]);
  });

  it("keyed by session id, with labels", () => {
    const entry = {
      label: "my-project",
      created_at: "2025-01-01T00:00:00Z",
      last_active: 1735689605.5,
      message_count: 4,
    };
    const { shape, sessions } = readSessionIndex(JSON.stringify({ abc123: entry, broken: 5 }));
    expect(shape).toBe("claw0-by-id");
    expect(sessions).toEqual([
      {
        key: null,
        sessionId: "abc123",
        file: null,
        entry: { ...entry, sessionId: "abc123", updatedAt: 1735689605500 },
      },
    ]);
  });

  it("OpenClaw's own is read by the same function", () => {
    const { shape, sessions, unreadableKeys } = readSessionIndex(
      JSON.stringify({ k: { sessionId: id, sessionFile: "/a/b.jsonl", x: 1 }, bad: {} }),
    );
    expect([shape, unreadableKeys]).toEqual(["openclaw", ["bad"]]);
    expect(sessions).toEqual([
      { key: "k", sessionId: id, file: "/a/b.jsonl", entry: { sessionId: id, sessionFile: "/a/b.jsonl", x: 1 } },
    ]);
  });
});

describe("paths", () => {
  it("of an agent's sessions and their index", () => {
    expect(resolveSessionsDir({ stateDir })).toBe("/home/u/.openclaw/agents/main/sessions");
    expect(resolveSessionsDir({ stateDir: "/home/u/.clawcode/", agentId: "codex" })).toBe(
      "/home/u/.clawcode/agents/codex/sessions",
    );
    expect(resolveDefaultStorePath({ stateDir })).toBe("/home/u/.openclaw/agents/main/sessions/sessions.json");
    for (const agentId of ["", "..", "a/b", "a\0", "-x", "x".repeat(65)])
      expect(() => resolveSessionsDir({ stateDir, agentId })).toThrow(/agent id/);
  });

  it("of a transcript and of a topic's, percent-encoded", () => {
    expect(resolveTranscriptPath({ stateDir, sessionId: id })).toBe(`${stateDir}/agents/main/sessions/${id}.jsonl`);
    expect(resolveTranscriptPath({ stateDir, sessionId: id, topicId: 7 })).toBe(
      `${stateDir}/agents/main/sessions/${id}-topic-7.jsonl`,
    );
    expect(resolveTranscriptPath({ stateDir, sessionId: id, topicId: "a/../b c" })).toBe(
      `${stateDir}/agents/main/sessions/${id}-topic-a%2F..%2Fb%20c.jsonl`,
    );
    for (const topicId of ["", " ", "\ud800", "/".repeat(40)])
      expect(() => resolveTranscriptPath({ stateDir, sessionId: id, topicId })).toThrow(/topic id/);
    for (const sessionId of ["", "..", "../x", "a/b", "/etc/passwd", "a\0b", "con", "C:x"]) {
      expect(() => resolveTranscriptPath({ stateDir, sessionId })).toThrow(/session id/);
    }
  });

  it("of a configured store", () => {
    const options = { stateDir, homeDir: "/home/u", agentId: "codex" };
    expect(resolveStorePath("~/x/{agentId}/{agentId}.json", options)).toBe("/home/u/x/codex/codex.json");
    expect(resolveStorePath("/abs/{agentId}.json", options)).toBe("/abs/codex.json");
    expect(resolveStorePath("~other/x", options)).toBe("~other/x");
    expect(resolveStorePath(undefined, options)).toBe(`${stateDir}/agents/codex/sessions/sessions.json`);
    expect(resolveStorePath(" ", { stateDir, homeDir: "/home/u" })).toBe(
      `${stateDir}/agents/main/sessions/sessions.json`,
    );
    expect(() => resolveStorePath("/x\0", options)).toThrow(/cannot be used/);
    expect(() => resolveStorePath("/x", { ...options, agentId: "../.." })).toThrow(/agent id/);
  });

  it("of another machine are read by their last name", () => {
    const dir = resolveSessionsDir({ stateDir });
    const at = (sessionFile: string | null): unknown => resolveSessionFile(dir, { sessionId: id, sessionFile });
    expect(at(`/Users/other/.openclaw/agents/main/sessions/x_${id}.jsonl`)).toEqual({
      path: `${dir}/x_${id}.jsonl`,
      fileName: `x_${id}.jsonl`,
      isForeign: true,
    });
    expect(at(`C:\\Users\\o\\sessions\\${id}.jsonl`)).toEqual({
      path: `${dir}/${id}.jsonl`,
      fileName: `${id}.jsonl`,
      isForeign: true,
    });
    expect(at(`${dir}/${id}.jsonl`)).toMatchObject({ isForeign: false });
    expect(at(`${id}.jsonl`)).toMatchObject({ path: `${dir}/${id}.jsonl`, isForeign: false });
    for (const noText of [7, true, ["x"], { path: "x" }])
      expect(at(noText as unknown as string)).toMatchObject({ path: `${dir}/${id}.jsonl`, isForeign: true });
    for (const other of ["sessions.json", `${dir}/sessions.json`, `${id}.jsonl.lock`, ".env"]) {
      expect(at(other)).toMatchObject({ path: `${dir}/${id}.jsonl`, isForeign: true });
    }
    expect(at(null)).toEqual({ path: `${dir}/${id}.jsonl`, fileName: `${id}.jsonl`, isForeign: false });
  });

  it("never lead out of the directory", { tags: ["slow"] }, () => {
    const dir = resolveSessionsDir({ stateDir });
    const attack = fc.oneof(
      fc.constantFrom(
        "..",
        ".",
        "/",
        "../../etc/passwd",
        "a/..",
        "x\0",
        "..\\..\\x",
        "C:",
        "\ud800",
        `${"a".repeat(300)}.jsonl`,
      ),
      fc.string(),
      fc.webPath(),
    );
    fc.assert(
      fc.property(fc.array(attack, { maxLength: 4 }), (parts) => {
        const { path, fileName } = resolveSessionFile(dir, { sessionId: id, sessionFile: parts.join("/") });
        expect(path).toBe(`${dir}/${fileName}`);
        expect(fileName).not.toMatch(/[/\\\0]|^\.{1,2}$/);
      }),
    );
    expect(() => resolveSessionFile(dir, { sessionId: "..", sessionFile: ".." })).toThrow(/session id/);
  });

  it("join with single slashes", () => {
    expect(joinPath("/a/", "/b", "", "c")).toBe("/a/b/c");
    expect(joinPath("", "b")).toBe("/b");
  });

  it("say whose sessions they hold", () => {
    expect(agentOfSessionsDir("/home/u/.openclaw/agents/codex/sessions")).toBe("codex");
    expect(agentOfSessionsDir("agents/../agents/main")).toBe("main");
    expect(agentOfSessionsDir("/tmp/golden")).toBe(null);
  });
});

describe("names in a sessions directory", () => {
  it.each([
    [`${id}.jsonl`, "transcript", id, null, null],
    [`${id}-topic-a%2Fb.jsonl`, "transcript", id, "a/b", null],
    [`${id}-topic-100%.jsonl`, "transcript", id, "100%", null],
    [`2026-11-21T20-13-56-883Z_${id}.jsonl`, "transcript", id, null, null],
    ["before-compaction.v3.jsonl", "transcript", "before-compaction.v3", null, null],
    ["has space.jsonl", "transcript", null, null, null],
    [`${id}.jsonl.reset.2026-03-01T00-00-00.000Z`, "reset-archive", id, null, "2026-03-01T00:00:00.000Z"],
    [`${id}-topic-7.jsonl.deleted.2026-03-01T00-00-00.000Z`, "deleted-archive", id, "7", "2026-03-01T00:00:00.000Z"],
    [`${id}.jsonl.reset.whenever`, "reset-archive", id, null, null],
    ["sessions.json", "index", null, null, null],
    [`${id}.jsonl.bak-123-1706803200000`, "backup", null, null, null],
    ["sessions.json.bak", "backup", null, null, null],
    [`${id}.jsonl.repaired.jsonl`, "backup", null, null, null],
    [`${id}.jsonl.corrupt-1706803200000-0a1b2c3d.jsonl`, "corrupt", null, null, null],
    [`${id}.trajectory.jsonl`, "trajectory", null, null, null],
    [`${id}.checkpoint.${id}.jsonl`, "checkpoint", null, null, null],
    [`sessions.json.123.${id}.tmp`, "temporary", null, null, null],
    [`${id}.jsonl.lock`, "lock", null, null, null],
    ["notes.md", "other", null, null, null],
  ])("%s is %s", (name, kind, sessionId, topicId, archivedAt) => {
    expect(classifySessionFile(name)).toMatchObject({ kind, sessionId, topicId, archivedAt });
  });

  it("of archives are made as they are read", () => {
    const name = archiveFileName(`${id}.jsonl`, "reset", "2026-03-01T10:20:30.400Z");
    expect(name).toBe(`${id}.jsonl.reset.2026-03-01T10-20-30.400Z`);
    expect(classifySessionFile(name).archivedAt).toBe("2026-03-01T10:20:30.400Z");
    expect(classifySessionFile(`2026-11-21T20-13-56-883Z_${id}.jsonl`).isPiName).toBe(true);
  });
});
