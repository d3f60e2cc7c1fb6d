import { createHash } from "node:crypto";
import type { PayloadCodec, SearchQuery } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import { createPostgresStore, type PostgresStore } from "@throughline/store-postgres";
import { describe, expect, inject, it } from "vitest";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
const ref = { namespace: "", agentId: "main", key: "agent:main:main" };

const inverted = (bytes: Uint8Array): Uint8Array => bytes.map((byte) => byte ^ 0xff);
const off: PayloadCodec = { name: "inverted", encode: inverted, decode: inverted };
const words: PayloadCodec = {
  ...off,
  searchToken: (word) => createHash("sha256").update(word).digest("hex").slice(0, 10),
};

async function found(store: PostgresStore, text: string): Promise<readonly number[]> {
  const hits = await Array.fromAsync(store.search?.search({ text }) ?? expect.unreachable("no search"));
  return hits.map(({ seq }) => seq);
}

describe.skipIf(url === "")(
  `an index of words under a codec${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    it("is emptied, when the codec gives no tokens any more, at the first write, and filled again with tokens", async () => {
      const schema = newSchema();
      await using before = createPostgresStore({ url, schema, codec: words, partitions: 2 });
      await before.save(ref, { sessionId: "one" }, { ifRevision: null });
      for (const content of ["the fever", "secret pills", "a cough"])
        await before.append(ref, [{ type: "message", message: { role: "user", content } }]);
      expect(await found(before, "fever")).toEqual([1]);

      await using without = createPostgresStore({ url, schema, codec: off });
      expect(without.search).toBeUndefined();
      await without.append(ref, [{ type: "message", message: { role: "user", content: "more" } }]);
      const left = await withClient(url, async (client) => {
        const { rows } = await client.query<{ count: string }>(
          `SELECT count(*) FROM (SELECT seq FROM "${schema}".search_documents
             UNION ALL SELECT indexed_seq FROM "${schema}".search_positions) r`,
        );
        return Number(rows[0]?.count);
      });
      expect(left).toBe(0);

      // A process with the old setting fills the index once more.
      expect(await found(before, "more")).toEqual([4]);
      const ids: string[] = [];
      for await (const { records } of without.read(ref)) ids.push(...records.map(({ id }) => id));
      await without.redact(ref, ids.slice(1, 2), { texts: ["secret"], reason: "asked" });
      expect(await found(before, "pills")).toEqual([]);
      expect(await found(before, "fever")).toEqual([1]);
    });

    it.each(["plain", "tenant"] as const)("finds a beginning through pages of records, layout %s", async (layout) => {
      await using store = createPostgresStore({ url, schema: newSchema(), layout, codec: words, partitions: 2 });
      // Six hundred records are more than a page has, and those of every second session belong to somebody else.
      for (const [index, agentId] of ["main", "other", "main", "other", "main"].entries()) {
        const own = { namespace: "", agentId, key: `agent:${agentId}:${index}` };
        await store.save(own, { sessionId: `s${index}` }, { ifRevision: null });
        const draft = { type: "message", message: { role: "user", content: "a zebra" } };
        await store.append(
          own,
          Array.from({ length: 240 }, () => draft),
        );
      }
      const search = async (query: Partial<SearchQuery>): Promise<readonly string[]> => {
        const hits = await Array.fromAsync(store.search?.search({ text: "zeb*", limit: 1000, ...query }) ?? []);
        return hits.map(({ sessionId, seq }) => `${sessionId} ${seq}`);
      };
      const downTo = (session: string): readonly string[] =>
        Array.from({ length: 240 }, (_, index) => `${session} ${240 - index}`);
      expect(await search({ agentId: "main" })).toEqual(["s4", "s2", "s0"].flatMap(downTo));
      expect(await search({ agentId: "main", key: "agent:main:2" })).toEqual(downTo("s2"));
      expect(await search({ agentId: "main", role: "assistant" })).toEqual([]);
      expect(await search({ agentId: "other", limit: 3 })).toEqual(downTo("s3").slice(0, 3));
    });

    it("skips no record that another copy of the keyring decodes", async () => {
      const schema = newSchema();
      await using store = createPostgresStore({ url, schema, codec: words, partitions: 2 });
      await store.save(ref, { sessionId: "one" }, { ifRevision: null });
      await store.append(ref, [{ type: "message", message: { role: "user", content: "the fever" } }]);
      const decode: PayloadCodec["decode"] = (coded, { part }) => {
        if (part === "record") throw refused("KEY_MISSING", "The test says so.");
        return inverted(coded);
      };
      await using old = createPostgresStore({ url, schema, codec: { ...words, decode } });
      const refusal = { code: "CODEC_FAILED", details: { reason: "KEY_MISSING" } };
      await expect(found(old, "fever")).rejects.toMatchObject(refusal);
      expect(await found(store, "fever")).toEqual([1]);
    });
  },
);
