import { createHash } from "node:crypto";
import type { PayloadCodec } from "@throughline/core";
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
  `a codec that gives no tokens any more${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    it("empties the index at the first write, masks records, and can be turned on again", async () => {
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
  },
);
