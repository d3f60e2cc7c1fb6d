import type { RecordDraft, SearchQuery, SessionRef } from "@throughline/core";
import { createPostgresStore, type PostgresStore } from "@throughline/store-postgres";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { LayoutName } from "../src/layout.ts";
import { searchVector } from "../src/search-vector.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;

/** More than the documents of a stem that is frequent. */
const fillers = 24_000;

function refOf(agentId: string, name: string): SessionRef {
  return { namespace: "", agentId, key: `agent:${agentId}:${name}` };
}

function saying(text: string, atMs: number): RecordDraft {
  return { type: "message", timestamp: new Date(atMs).toISOString(), message: { role: "user", content: text } };
}

describe.skipIf(url === "").each(["plain", "tenant"] as const)(
  `a search for any of some words among many records, layout %s${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  (layout: LayoutName) => {
    const schema = newSchema();
    let store: PostgresStore;

    async function found(query: SearchQuery): Promise<string[]> {
      const hits = await Array.fromAsync(store.search?.search({ limit: 1000, ...query }) ?? expect.unreachable());
      return hits.map(({ snippet }) => snippet);
    }

    beforeAll(async () => {
      store = createPostgresStore({ url, schema, partitions: 2, layout, notify: false });
      const main = refOf("main", "one");
      await store.save(main, { sessionId: "one" }, { ifRevision: null });
      const rare = ["alpha rises", "beta common", "gamma rises", "oldest common"];
      await store.append(
        main,
        rare.map((text, index) => saying(text, 1000 + index)),
      );
      for (let at = 0; at < fillers; at += 1000)
        await store.append(
          main,
          Array.from({ length: 1000 }, (_, index) => saying(`common ${at + index}`, 10_000 + at + index)),
          { durability: "process" },
        );
      const other = refOf("other", "two");
      await store.save(other, { sessionId: "two" }, { ifRevision: null });
      await store.append(other, [saying("common in other", 1), saying("delta in other", 2)]);
      await found({ text: "alpha" });
      await withClient(url, (client) => client.query(`ANALYZE "${schema}".search_documents`));
    });
    afterAll(() => store.close());

    it("leaves out a frequent word while three rarer ones remain", async () => {
      const hits = await found({ anyOf: ["common", "alpha", "beta", "gamma"], agentId: "main" });
      expect(hits.toSorted()).toEqual(["alpha rises", "beta common", "gamma rises"]);
    });

    it("finds the newest records with a frequent word when fewer rare ones remain, behind the rare ones", async () => {
      const newest = Array.from({ length: 998 }, (_, index) => `common ${fillers - 1 - index}`);
      expect(await found({ anyOf: ["commons", "alpha", "beta"] })).toEqual(["beta common", "alpha rises", ...newest]);
      expect(await found({ anyOf: ["common"], agentId: "main", limit: 2 })).toEqual(newest.slice(0, 2));
    });

    it("counts words in the sessions that it searches", async () => {
      const anyOf = ["common", "alpha", "beta", "gamma"];
      expect(await found({ anyOf, agentId: "other" })).toEqual(["common in other"]);
      expect(await found({ anyOf, key: refOf("other", "two").key })).toEqual(["common in other"]);
      expect(await found({ anyOf, sessionId: "two", state: "active" })).toEqual(["common in other"]);
      expect(await found({ anyOf: ["common"], sessionId: "TWO" })).toEqual([]);
      expect(await found({ anyOf, untilMs: 2000, agentId: "main" })).toEqual([
        "beta common",
        "gamma rises",
        "alpha rises",
        "oldest common",
      ]);
    });
  },
);

describe("the words of a record", () => {
  it("have their stems and tools beside them", () => {
    expect(
      searchVector({ text: "compactions ran", toolNames: ["Web Search"], role: null }, null)
        .split(" ")
        .toSorted(),
    ).toEqual(["'compactions':1", "'ran':2", "'stem/compact'", "'tool/web_search'"]);
  });

  it.skipIf(url === "")("are taken by the server at their limit", async () => {
    let state = 1;
    const character = (): string => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return String.fromCodePoint(0x4e00 + ((state >>> 5) % 20_000));
    };
    const pairs = Array.from({ length: 250_000 }, character).join("");
    const inflected = Array.from({ length: 30_000 }, (_, index) => `Слово${index.toString(36)}ения`).join(" ");
    const vectors = [
      searchVector({ text: pairs, toolNames: ["bash"], role: null }, null),
      searchVector({ text: inflected, toolNames: [], role: null }, null),
    ];
    const { rows } = await withClient(url, (client) =>
      client.query<{ length: number }>("SELECT length(v::tsvector) FROM unnest($1::text[]) AS v", [vectors]),
    );
    expect(rows[0]?.length).toBeGreaterThan(80_000);
    expect(rows[1]?.length).toBeGreaterThan(30_000);
  });
});
