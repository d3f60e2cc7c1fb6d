import type { PartialReply, SessionRef } from "@throughline/core";
import { createPostgresStore, type PostgresStore } from "@throughline/store-postgres";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:a" };
const secret = "partial-secret";
const partial: PartialReply = {
  v: 1,
  sessionId: "a",
  turnId: "turn-1",
  fence: 1,
  step: 1,
  attempt: 0,
  afterSeq: 1,
  provider: "provider",
  api: "api",
  model: null,
  text: `the first words, ${secret}`,
  updatedMs: 1,
};

describe.skipIf("unavailable" in place)("a stored partial", () => {
  let schema: string;
  let store: PostgresStore;

  beforeEach(async () => {
    schema = newSchema();
    store = createPostgresStore({ url, schema, partitions: 2 });
    await store.save(ref, { sessionId: "a" }, { ifRevision: null });
    const turn = { action: "open", turnId: "turn-1", owner: "o", leaseUntilMs: 1, fence: 1 } as const;
    const question = { id: "q1", type: "message", message: { role: "user", content: `question, ${secret}` } };
    await store.append(ref, [question], { turn });
    await store.partials.write(ref, partial);
  });

  afterEach(async () => {
    await store.close();
    await withClient(url, (client) => client.query(`DROP SCHEMA "${schema}" CASCADE`));
  });

  /** The tables of the schema, partitions too, that hold the text in any column. */
  const holding = (): Promise<readonly string[]> =>
    withClient(url, async (client) => {
      const { rows } = await client.query<{ name: string }>(
        "SELECT c.relname AS name FROM pg_class c WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'm')",
        [`"${schema}"`],
      );
      expect(rows.length).toBeGreaterThan(5);
      const found: string[] = [];
      for (const { name } of rows) {
        const hex = Buffer.from(secret).toString("hex");
        const { rowCount } = await client.query(
          `SELECT FROM "${schema}"."${name}" t WHERE position($1 in t::text) > 0 OR position($2 in t::text) > 0`,
          [secret, hex],
        );
        if ((rowCount ?? 0) > 0) found.push(name);
      }
      return found.toSorted();
    });

  it.each([
    ["a later version", `replace(content, '"v":1', '"v":2')`, "STORE_VERSION_UNSUPPORTED"],
    ["text that is no JSON", `replace(content, '"v":1', '"v:1')`, "STORE_CORRUPT"],
    ["a field missing", `replace(content, '"step":1', '"other":1')`, "STORE_CORRUPT"],
    ["JSON that is no object", "'7'", "STORE_CORRUPT"],
  ])("with %s is refused, and the next one replaces it", async (_name, expression, code) => {
    const { rowCount } = await withClient(url, (client) =>
      client.query(`UPDATE "${schema}".partials SET content = ${expression}`),
    );
    expect(rowCount).toBe(1);
    await expect(store.partials.read(ref)).rejects.toMatchObject({ code });
    await store.partials.write(ref, partial);
    expect(await store.partials.read(ref)).toEqual(partial);
  });

  it("leaves no copy in any table of the schema after a redaction and a purge", async () => {
    for await (const _hit of store.search?.search({ text: "question" }) ?? []) break;
    const before = await holding();
    expect(before).toContain("partials");
    expect(before.length).toBeGreaterThan(1);
    await store.redact(ref, ["q1"], { reason: "test" });
    expect(await holding()).toEqual([]);

    await store.partials.write(ref, partial);
    expect(await holding()).toEqual(["partials"]);
    await store.remove(ref, { purge: true });
    expect(await holding()).toEqual([]);
  });

  it("leaves no copy after an archive, a reset, and its removal", async () => {
    const ends: readonly (() => Promise<unknown>)[] = [
      () => store.partials.remove(ref, 1),
      async () => store.save(ref, { sessionId: "next" }, { ifRevision: (await store.load(ref))?.revision ?? null }),
    ];
    for (const end of ends) {
      await store.partials.write(ref, partial);
      expect(await holding()).toContain("partials");
      await end();
      expect(await holding()).not.toContain("partials");
    }
    const turn = { action: "open", turnId: "turn-1", owner: "o", leaseUntilMs: 1, fence: 1 } as const;
    await store.append(ref, [{ type: "message", message: { role: "user", content: "next" } }], { turn });
    await store.partials.write(ref, { ...partial, sessionId: "next" });
    await store.move(ref, { kind: "archive" });
    expect(await holding()).not.toContain("partials");
  });
});
