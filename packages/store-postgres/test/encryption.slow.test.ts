import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describeStoreConformance } from "@throughline/store-conformance";
import type { PayloadCodec, SessionRecord } from "@throughline/core";
import { createPostgresStore } from "@throughline/store-postgres";
import { afterAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { describeEncryptedStore, encryptedRunner, encryptionForTests } from "@throughline/test-kit/encryption";
import { endPools, newSchema, openUnderTest, withClient } from "./store-under-test.ts";

const place = inject("postgres");

afterAll(endPools);

if ("unavailable" in place) {
  describe("store-postgres keeps the store contract with encryption", () => {
    it.skip(`needs PostgreSQL: ${place.unavailable}`, () => undefined);
  });
} else {
  const codec = await encryptionForTests();
  damageTests(place.url, codec);
  for (const layout of ["plain", "tenant"] as const) {
    describeEncryptedStore({
      name: `store-postgres, ${layout} layout,`,
      encryption: codec,
      open: (given) => openUnderTest(place.url, given, { layout }),
      elsewhere: (sinceMs) => serverContents(place, sinceMs),
    });
    describeStoreConformance({
      name: `store-postgres, ${layout} layout`,
      runner: encryptedRunner(),
      open: () => openUnderTest(place.url, undefined, { layout }),
      openWithCodec: (given) => openUnderTest(place.url, given, { layout }),
      codec,
    });
  }
}

/** Flips one bit of the kept bytes of a record. */
async function flipBit(url: string, schema: string, sessionId: string, seq: number): Promise<void> {
  // Byte 1 is the first of the id of the key.
  const sql = `UPDATE "${schema}".records SET coded = set_byte(coded, 1, get_byte(coded, 1) # 1)
    WHERE seq = $1 AND session_no = (SELECT session_no FROM "${schema}".sessions WHERE session_id = $2)`;
  await withClient(url, async (client) => void (await client.query(sql, [seq, sessionId])));
}

function damageTests(url: string, codec: PayloadCodec): void {
  describe("a record of store-postgres with encryption whose key id has a flipped bit", () => {
    it("reads as damage, and the index and a search go on without it", async () => {
      const schema = newSchema();
      onTestFinished(() =>
        withClient(url, async (client) => void (await client.query(`DROP SCHEMA "${schema}" CASCADE`))),
      );
      await using store = createPostgresStore({ url, schema, codec });
      const ref = { namespace: "", agentId: "main", key: "agent:main:a" };
      await store.save(ref, { sessionId: "s" }, { ifRevision: null });
      const say = (content: string) => ({ type: "message", message: { role: "user", content } });
      const line =
        '{"type":"message","id":"i","parentId":null,"timestamp":"2026-01-02T03:04:05.006Z","message":{"role":"user","content":"harbor four"} }';
      const record: SessionRecord = JSON.parse(line);
      const { records } = await store.append(ref, [
        say("harbor one"),
        say("harbor two"),
        say("harbor three"),
        { source: line, record },
      ]);
      const found = async (): Promise<readonly number[]> =>
        (await Array.fromAsync(store.search?.search({ text: "harbor" }) ?? [])).map(({ seq }) => seq).toSorted();
      await flipBit(url, schema, "s", 1);
      await flipBit(url, schema, "s", 4);
      expect(await found()).toEqual([2, 3]);
      // This one is in the index already.
      await flipBit(url, schema, "s", 3);
      expect(await found()).toEqual([2]);
      await expect(Array.fromAsync(store.read(ref))).rejects.toMatchObject({
        code: "STORE_CORRUPT",
        details: { seq: 1 },
      });
      // A page of records is read without their sources.
      const second = { namespace: "", agentId: "main", key: "agent:main:b" };
      await store.save(second, { sessionId: "t" }, { ifRevision: null });
      await store.append(second, [say("one"), { source: line, record }]);
      await flipBit(url, schema, "t", 2);
      const refusal = { code: "STORE_CORRUPT", details: { seq: 2 } };
      await expect(Array.fromAsync(store.read(second))).rejects.toMatchObject(refusal);
      await expect(store.readWindow?.(second)).rejects.toMatchObject(refusal);
      await store.remove(second, { purge: true });
      const findings = await Array.fromAsync(store.maintenance?.verify({ full: true }) ?? []);
      const damaged = findings.filter(({ code }) => code === "CHECKSUM_MISMATCH");
      expect(damaged.map(({ recordId }) => recordId)).toEqual([records[0]?.id, records[2]?.id, "i"]);
    });
  });
}

/**
 * The statistics of the server, and what it wrote into its data directory since a time, with a checkpoint at the end:
 * tables, indexes and the write-ahead log. Other tests leave gigabytes there, which do not change.
 */
async function serverContents(
  { url, dataFolder }: { readonly url: string; readonly dataFolder: string },
  sinceMs: number,
): Promise<readonly Uint8Array[]> {
  const statistics = await withClient(url, async (client) => {
    await client.query("ANALYZE");
    await client.query("CHECKPOINT");
    const { rows } = await client.query("SELECT * FROM pg_stats");
    return Buffer.from(JSON.stringify(rows));
  });
  const names = readdirSync(dataFolder, { recursive: true, encoding: "utf8" });
  return [statistics, ...names.flatMap((name) => contentOf(join(dataFolder, name), sinceMs))];
}

/** The server removes files at any time, also those of other tests: a dropped table, or a part of the log. */
function contentOf(path: string, sinceMs: number): readonly Uint8Array[] {
  try {
    const stats = statSync(path);
    // The clock of a file system is coarser than that of a process.
    return stats.isFile() && stats.mtimeMs > sinceMs - 2000 ? [readFileSync(path)] : [];
  } catch (error) {
    if ((error as { readonly code?: string }).code === "ENOENT") return [];
    throw error;
  }
}
