import { describe, expect, it } from "vitest";
import { hasErrorCode, parseSessionKey, type RecordDraft } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { createFrameworkLog } from "../../src/framework-log/framework-log.ts";
import { firstBatch } from "../../src/framework-log/first-batch.ts";
import { frameworkSessionKey } from "../../src/framework-log/session-key.ts";

const user = (content: string): RecordDraft => ({ type: "message", message: { role: "user", content } });

describe("frameworkSessionKey", () => {
  const ids = [
    "plain",
    "a:b:thread:c",
    "../x",
    "__proto__",
    "",
    " ",
    "  ",
    "x ",
    " x",
    "a\u0000b",
    "a%0000b",
    "%empty",
    "\ud800",
    "\udc00",
    "🦉",
    "\u202e",
    "x".repeat(300),
    "x".repeat(900),
    "x".repeat(901),
    `${"🦉".repeat(400)}`,
    `${"🦉".repeat(401)}`,
  ];

  it("gives every id a key of its own that a store takes", async () => {
    const store = createMemoryStore();
    const keys = new Set<string>();
    for (const id of ids) {
      const ref = frameworkSessionKey({ agentId: "main", framework: "acme", id });
      expect(parseSessionKey(ref.key).agentId).toBe("main");
      await createFrameworkLog({ store, ref }).append(() => ({ drafts: [user(id.toWellFormed())] }));
      keys.add(ref.key);
    }
    expect(keys.size).toBe(ids.length);
    expect(frameworkSessionKey({ agentId: "main", framework: "acme", id: "plain" }).key).toBe("agent:main:acme:plain");
  });
});

describe("createFrameworkLog", () => {
  const ref = frameworkSessionKey({ agentId: "main", framework: "acme", id: "s" });

  it("sees what others append, and makes a change again for the newest view", async () => {
    const store = createMemoryStore();
    const [one, two] = [createFrameworkLog({ store, ref }), createFrameworkLog({ store, ref })];
    await one.append(() => ({ drafts: [user("first")] }));
    expect((await two.view()).lastSeq).toBe(1);
    const seen: number[] = [];
    await Promise.all(
      [one, two, one, two].map((log) =>
        log.append(({ lastSeq, records }) => {
          seen.push(records.length - lastSeq);
          return { drafts: [user(`at ${lastSeq}`)] };
        }),
      ),
    );
    expect(new Set(seen)).toEqual(new Set([0]));
    const texts = (await one.view()).records.map(({ record }) => (record["message"] as { content: string }).content);
    expect(texts).toEqual(["first", "at 1", "at 2", "at 3", "at 4"]);
  });

  it("keeps a turn of another handle out, and begins anew after a reset and a purge", async () => {
    const store = createMemoryStore();
    const [one, two] = [createFrameworkLog({ store, ref }), createFrameworkLog({ store, ref })];
    const turn = await one.openTurn({ owner: "one", leaseMs: 60_000 });
    const refused = await two.append(() => ({ drafts: [user("no")] })).catch((error: unknown) => error);
    expect(hasErrorCode(refused, "SESSION_BUSY")).toBe(true);
    await expect(one.openTurn({ owner: "again", leaseMs: 1 })).rejects.toThrow(/under way/);
    await one.append(() => ({ drafts: [user("yes")] }));
    await turn.close("done");
    await two.append(() => ({ drafts: [user("now")] }));
    await store.remove(ref, { purge: true });
    expect((await two.view()).records).toEqual([]);
    await one.append(() => ({ drafts: [user("anew")] }));
    expect((await two.view()).records).toHaveLength(1);
  });
});

describe("firstBatch", () => {
  const derived = (index: number): RecordDraft => ({ ...user("x"), derivedFrom: { id: "a", index } });
  const source = { source: "x".repeat(3 * 1024 * 1024), record: user("x") };

  it("takes whole items, as long as the store and memory take them", () => {
    const limits = { batchRecords: 4 };
    expect(firstBatch([], limits)).toHaveLength(0);
    expect(firstBatch([user("a"), user("b")], limits)).toHaveLength(2);
    expect(firstBatch([user("a"), user("b"), derived(1), derived(2), derived(3)], limits)).toHaveLength(1);
    expect(firstBatch([user("a"), derived(1), derived(2), derived(3), derived(4), user("b")], limits)).toHaveLength(5);
    expect(firstBatch([source, source, source], limits)).toHaveLength(1);
    expect(
      firstBatch(
        Array.from({ length: 2000 }, () => user("a")),
        { batchRecords: 5000 },
      ),
    ).toHaveLength(500);
  });
});
