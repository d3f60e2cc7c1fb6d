import { join } from "node:path";
import Database from "better-sqlite3";
import { createXorCodec } from "@throughline/store-conformance";
import { createSqliteStore } from "@throughline/store-sqlite";
import type { SqliteStoreOptions } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { say } from "./append-drafts.ts";
import { createSession, testFolder } from "./test-folder.ts";

const at = "2026-01-02T03:04:05.006Z";
const atMs = Date.parse(at);

/** A store with one record of each kind the views show. */
async function filled(options: Partial<SqliteStoreOptions> = {}): Promise<string> {
  const path = join(testFolder(), "store.db");
  await using store = createSqliteStore({ path, ...options });
  const ref = await createSession(store, "a");
  const message = (
    id: string,
    body: object,
  ): { readonly type: string; readonly id: string; readonly timestamp: string; readonly message: object } => ({
    type: "message",
    id,
    timestamp: at,
    message: body,
  });
  await store.append(
    ref,
    [
      message("m1", { role: "user", content: "find it" }),
      message("m2", {
        role: "assistant",
        content: [
          { type: "text", text: "looking" },
          { type: "toolCall", id: "c1", name: "grep", arguments: { for: "it" } },
        ],
      }),
      message("m3", { role: "toolResult", toolCallId: "c1", toolName: "grep", content: "found", isError: true }),
      message("m4", { role: "system", content: "rules" }),
      {
        type: "compaction",
        id: "p1",
        timestamp: at,
        summary: "so far",
        firstKeptEntryId: "m2",
        tokensBefore: 9000,
      },
      {
        type: "checkpoint",
        id: "k1",
        timestamp: at,
        checkpoint: {
          summary: "here",
          tokensAtCheckpoint: 7,
          messageCountAtCheckpoint: 3,
          topics: ["t"],
          keyDecisions: ["d"],
          openQuestions: ["q"],
          coversToId: "m3",
        },
      },
    ],
    { entry: { label: "x" } },
  );
  return path;
}

function rows(path: string, sql: string): unknown[] {
  const database = new Database(path, { readonly: true });
  try {
    return database.prepare(sql).all();
  } finally {
    database.close();
  }
}

describe("views", () => {
  it("show messages by role and tool, calls and results apart [C37]", async () => {
    const path = await filled();
    const columns = "id, session_key, timestamp, role, content, tool_name, tool_input, tool_result, tool_is_error";
    const none = {
      session_key: "agent:main:a",
      timestamp: atMs,
      content: null,
      tool_name: null,
      tool_input: null,
      tool_result: null,
      tool_is_error: null,
    };
    expect(rows(path, `SELECT ${columns} FROM messages ORDER BY seq, role`)).toEqual([
      { ...none, id: "m1", role: "user", content: "find it" },
      {
        ...none,
        id: "m2",
        role: "assistant",
        content: JSON.stringify([
          { type: "text", text: "looking" },
          { type: "toolCall", id: "c1", name: "grep", arguments: { for: "it" } },
        ]),
      },
      { ...none, id: "m2#c1", role: "tool_use", tool_name: "grep", tool_input: '{"for":"it"}' },
      {
        ...none,
        id: "m3",
        role: "tool_result",
        content: "found",
        tool_name: "grep",
        tool_result: "found",
        tool_is_error: 1,
      },
      { ...none, id: "m4", role: "system", content: "rules" },
    ]);
  });

  // The columns that the compactor and the checkpointer fill: apps/cli/test/summary-views.slow.test.ts.
  it("show compactions, checkpoints and sessions by the columns of their documents [C46]", async () => {
    const path = await filled();
    expect(
      rows(path, "SELECT id, session_key, timestamp, summary, first_kept_entry_id, tokens_before FROM compactions"),
    ).toEqual([
      {
        id: "p1",
        session_key: "agent:main:a",
        timestamp: atMs,
        summary: "so far",
        first_kept_entry_id: "m2",
        tokens_before: 9000,
      },
    ]);
    expect(
      rows(
        path,
        "SELECT id, summary, tokens_at_checkpoint, message_count_at_checkpoint, topics, key_decisions, open_questions, covers_up_to FROM checkpoints",
      ),
    ).toEqual([
      {
        id: "k1",
        summary: "here",
        tokens_at_checkpoint: 7,
        message_count_at_checkpoint: 3,
        topics: '["t"]',
        key_decisions: '["d"]',
        open_questions: '["q"]',
        covers_up_to: "m3",
      },
    ]);
    expect(
      rows(
        path,
        "SELECT key, typeof(created_at) AS created, typeof(updated_at) AS updated, json_extract(metadata, '$.label') AS label, message_count FROM sessions",
      ),
    ).toEqual([{ key: "agent:main:a", created: "integer", updated: "integer", label: "x", message_count: 4 }]);
  });

  it("show every record with its whole content", async () => {
    const path = await filled();
    const records = rows(
      path,
      "SELECT id, session_key, parent_id, type, timestamp, data FROM records ORDER BY seq",
    ) as { readonly id: string; readonly data: string }[];
    expect(records.map(({ id, data }) => [id, (JSON.parse(data) as { id: string }).id])).toEqual(
      ["m1", "m2", "m3", "m4", "p1", "k1"].map((id) => [id, id]),
    );
    expect(records[1]).toMatchObject({
      session_key: "agent:main:a",
      parent_id: "m1",
      type: "message",
      timestamp: atMs,
    });
  });

  it("show no content under a codec", async () => {
    const path = await filled({ codec: createXorCodec() });
    expect(rows(path, "SELECT role, tool_name, content, data FROM messages")).toEqual(
      Array.from({ length: 4 }, () => ({ role: null, tool_name: null, content: null, data: null })),
    );
    expect(rows(path, "SELECT metadata FROM sessions")).toEqual([{ metadata: null }]);
  });
});

describe("foreign keys", () => {
  it("refuse a record without its session, and take a purged session's rows with it", async () => {
    const path = await filled();
    const store = createSqliteStore({ path });
    const ref = await createSession(store, "b");
    await store.append(ref, [{ type: "message", id: "x", message: { role: "user", content: "x" } }], {
      idempotencyKey: "k",
    });
    const database = new Database(path);
    database.pragma("foreign_keys = ON");
    const insert =
      "INSERT INTO store_records (session, seq, id, type, side, bytes, text) VALUES (99, 1, 'a', 'message', 0, 1, '{}')";
    expect(() => database.exec(insert)).toThrow(/FOREIGN KEY/);
    await store.remove(ref, { purge: true });
    for (const table of ["store_records", "store_record_ids", "store_entries", "store_keyed_appends"]) {
      expect(
        database
          .prepare(`SELECT count(*) FROM ${table} WHERE session NOT IN (SELECT session FROM store_sessions)`)
          .pluck()
          .get(),
        table,
      ).toBe(0);
    }
    expect(database.prepare("SELECT count(*) FROM store_keyed_appends").pluck().get()).toBe(0);
    database.close();
    await store.close();
  });
});

describe("order", () => {
  it("of a list by key is the database's own, and pages lose no key that scripts sort otherwise", async () => {
    await using store = createSqliteStore({ path: join(testFolder(), "store.db") });
    const names = ["\u{1F600}", "\uFF01", "z", "\u{10FFFF}", "é"];
    for (const [index, name] of names.entries())
      await store.save(
        { namespace: "", agentId: "main", key: `k${name}` },
        { sessionId: `s${index}` },
        { ifRevision: null },
      );
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await store.list({
        sort: "key",
        keyPrefix: "k",
        limit: 1,
        ...(cursor === undefined ? {} : { cursor }),
      });
      found.push(...page.sessions.map(({ ref }) => ref.key.slice(1)));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    expect(found).toEqual(["z", "é", "\uFF01", "\u{1F600}", "\u{10FFFF}"]);
  });

  it("do not show the sessions in which imports kept their marks", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path });
    const sessions = [
      ["", "agent:main:a", false],
      ["", "agent:main:imports:mine", false],
      ["throughline.imports", "agent:main:imports:sources:1", false],
      ["team.imports", "agent:main:imports:running:1", false],
      ["team.imports", "agent:main:imports:with records", true],
      ["team.imports", "agent:main:chat", false],
    ] as const;
    for (const [index, [namespace, key, hasRecords]] of sessions.entries()) {
      const ref = { namespace, agentId: "main", key };
      await store.save(ref, { sessionId: `s${index}` }, { ifRevision: null });
      if (hasRecords) await store.append(ref, [say("kept")]);
    }
    const database = new Database(path, { readonly: true });
    const shown = database.prepare("SELECT session_id FROM sessions ORDER BY session_id").pluck().all();
    database.close();
    expect(shown).toEqual(["s0", "s1", "s4", "s5"]);
  });
});
