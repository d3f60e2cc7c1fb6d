import { conformanceCases } from "@throughline/store-conformance/internal";
import { runConformance } from "@throughline/store-conformance";
import { type SessionRef, ThroughlineError } from "@throughline/core";
import { createPostgresStore } from "@throughline/store-postgres";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { startPooler, type Pooler } from "./start-pooler.ts";
import { endPools, newSchema, openUnderTest } from "./store-under-test.ts";

const place = inject("postgres");
const started = "unavailable" in place ? `needs PostgreSQL, ${place.unavailable}` : await startPooler(place);
const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:one" };

describe.skipIf(typeof started === "string")(
  `behind PgBouncer in transaction mode${typeof started === "string" ? `: ${started}` : ""}`,
  () => {
    const { url, stop } = started as Pooler;
    const schema = newSchema();
    beforeAll(async () => {
      await using store = createPostgresStore({ url, schema, partitions: 2 });
      await store.save(ref, { sessionId: "one" }, { ifRevision: null });
    });
    afterAll(async () => {
      await endPools();
      await stop();
    });

    it.each([true, false])(
      "24 writers over 3 connections of the server, with names for statements: %s: each turn once",
      async (prepare) => {
        const writers = Array.from({ length: 3 }, () =>
          createPostgresStore({ url, schema, prepare, maxConnections: 8, notify: false }),
        );
        const turns = Array.from({ length: 120 }, (_each, turn) => `${prepare} ${turn}`);
        const taken = await Promise.all(
          turns.map(async (key, turn) => {
            const draft = { type: "message", message: { role: "user", content: key } };
            const { records } = await (writers[turn % 3] ?? expect.unreachable()).append(ref, [draft], {
              ...(turn % 2 === 0 ? { idempotencyKey: key } : {}),
              durability: turn % 3 === 0 ? "process" : "disk",
            });
            return records.map(({ seq, id }) => `${seq} ${id}`);
          }),
        );
        const found: string[] = [];
        for await (const { records } of (writers[0] ?? expect.unreachable()).read(ref))
          for (const { seq, id, record } of records)
            if (JSON.stringify(record).includes(`"content":"${prepare} `)) found.push(`${seq} ${id}`);
        expect(found.toSorted()).toEqual(taken.flat().toSorted());
        await Promise.all(writers.map((store) => store.close()));
      },
    );

    it("a watch that looks by itself misses nothing", async () => {
      await using store = createPostgresStore({ url, schema, notify: false, pollMs: 20 });
      await using other = createPostgresStore({ url, schema, notify: false });
      const from = (await store.load(ref))?.head.lastSeq ?? 0;
      const controller = new AbortController();
      const seen: number[] = [];
      const appending = other.append(
        ref,
        [1, 2].map(() => ({ type: "custom", customType: "x" })),
      );
      for await (const { records } of store.watch.watch(ref, { afterSeq: from, signal: controller.signal })) {
        seen.push(...records.map(({ seq }) => seq));
        if (seen.length === 2) controller.abort();
      }
      await appending;
      expect(seen).toEqual([from + 1, from + 2]);
    });

    it("a pooler that goes away is said to be unreachable", async () => {
      const own = await startPooler(place as { readonly url: string; readonly dataFolder: string });
      if (typeof own === "string") throw new Error(own);
      await using store = createPostgresStore({
        url: own.url,
        schema,
        timeoutMs: 2000,
        connectTimeoutMs: 200,
        notify: false,
      });
      await store.load(ref);
      await own.stop();
      const error: unknown = await store
        .append(ref, [{ type: "custom", customType: "x" }])
        .catch((reason: unknown) => reason);
      expect(ThroughlineError.isInstance(error) && error.code).toBe("STORE_UNREACHABLE");
    });

    it("keeps the contract there: a part of the kit; THROUGHLINE_POOLER=1 puts all of it behind the pooler", async () => {
      const cases = conformanceCases.filter(({ id }) => /^(append|expect|turns|fork|redact|move|entries)\//.test(id));
      const results = await runConformance({
        cases,
        open: () => openUnderTest(url, undefined, { notify: false }),
      });
      expect(results.filter(({ error }) => error !== null)).toEqual([]);
      expect(results.filter(({ passed }) => passed).length).toBeGreaterThan(40);
    });
  },
);
