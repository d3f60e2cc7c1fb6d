import assert from "node:assert/strict";
import { abilityOf, assertFails, assertRefused, createSession, readRecords, reopened } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  assertInNoFile,
  bytesOf,
  chunkBytes,
  facetOf,
  idOf,
  listFiles,
  pieces,
  putFile,
  readFile,
  requires,
  scope,
} from "../file-tools.ts";
import { createXorCodec } from "../xor-codec.ts";

const lengths = [0, 1, chunkBytes - 1, chunkBytes, chunkBytes + 1, 3 * chunkBytes + 7];

/** A store may have read ahead of its caller. */
async function drained(reader: AsyncIterator<Uint8Array>): Promise<void> {
  while ((await reader.next()).done !== true);
}

export const fileCases: readonly ConformanceCase[] = [
  {
    id: "files/round-trip",
    demand: "a file of any length comes back byte for byte; its id is the SHA-256 of the bytes",
    requires,
    async run({ store }) {
      for (const length of lengths) {
        const bytes = bytesOf(length, length + 1);
        const put = await facetOf(store).put(scope, pieces(bytes));
        assert.deepEqual([put.id, put.bytes], [idOf(bytes), length]);
        assert.deepEqual(await facetOf(store).stat(scope, put.id), put);
        assert.ok(Buffer.from(await readFile(store, put.id)).equals(bytes), `${length} bytes come back`);
      }
    },
  },
  {
    id: "files/once",
    demand: "the same bytes are one file of a scope, however they arrive, and it can be read after the second put",
    requires,
    async run({ store }) {
      const bytes = bytesOf(chunkBytes + 100);
      const first = await putFile(store, bytes);
      assert.equal((await facetOf(store).put(scope, pieces(bytes, 1000))).id, first);
      assert.equal((await listFiles(store)).length, 1);
      assert.ok(Buffer.from(await readFile(store, first)).equals(bytes));
    },
  },
  {
    id: "files/range",
    demand: "a range gives exactly its bytes, over the edges of chunks, and a range outside of the file is refused",
    requires,
    async run({ store }) {
      const bytes = bytesOf(2 * chunkBytes + 10);
      const id = await putFile(store, bytes);
      for (const [from, to] of [
        [0, 1],
        [chunkBytes - 1, chunkBytes + 1],
        [chunkBytes, 2 * chunkBytes],
        [5, bytes.length],
        [7, 7],
      ] as const)
        assert.ok(
          Buffer.from(await readFile(store, id, { from, to })).equals(bytes.subarray(from, to)),
          `${from}-${to}`,
        );
      for (const range of [{ from: 3, to: 2 }, { to: bytes.length + 1 }, { from: bytes.length + 1 }, { from: -1 }])
        await assertFails(readFile(store, id, range), "INPUT_INVALID");
    },
  },
  {
    id: "files/not-found",
    demand: "an id without a file is FILE_NOT_FOUND, has no facts, and its deletion does nothing",
    requires,
    async run({ store }) {
      await putFile(store, bytesOf(10));
      for (const id of [idOf(bytesOf(11)), "", "../../etc/passwd", idOf(bytesOf(10)).toUpperCase()]) {
        await assertFails(readFile(store, id), "FILE_NOT_FOUND");
        assert.equal(await facetOf(store).stat(scope, id), null);
        assert.equal(await facetOf(store).delete(scope, id), false);
      }
      assert.equal((await listFiles(store)).length, 1);
    },
  },
  {
    id: "files/scope",
    demand: "a file is in its namespace and agent only: another one neither reads, lists, deletes nor notices it",
    requires,
    async run({ store }) {
      const bytes = bytesOf(1000);
      const id = await putFile(store, bytes);
      for (const other of [
        { namespace: "tenant", agentId: "main" },
        { namespace: "", agentId: "other" },
      ]) {
        await assertFails(readFile(store, id, { at: other }), "FILE_NOT_FOUND");
        assert.deepEqual([await facetOf(store).stat(other, id), await listFiles(store, other)], [null, []]);
        assert.equal(await facetOf(store).delete(other, id), false);
        const own = await facetOf(store).put(other, pieces(bytes));
        assert.deepEqual([own.id, own.bytes], [id, bytes.length]);
        assert.equal(await facetOf(store).delete(other, id), true);
      }
      assert.ok(Buffer.from(await readFile(store, id)).equals(bytes));
    },
  },
  {
    id: "files/scope-invalid",
    demand: "a scope that no session can have is refused",
    requires,
    async run({ store }) {
      await assertRefused(putFile(store, bytesOf(1), { namespace: "", agentId: "../main" }), "AGENT_ID_INVALID");
      await assertRefused(putFile(store, bytesOf(1), { namespace: "a/b", agentId: "main" }), "NAMESPACE_INVALID");
    },
  },
  {
    id: "files/unfinished",
    demand: "a file that arrives is seen by nobody, and nothing of it stays when its sender fails",
    requires,
    async run({ under, store }) {
      const bytes = bytesOf(3 * chunkBytes);
      const broken = async function* (): AsyncGenerator<Uint8Array> {
        yield* pieces(bytes.subarray(0, 2 * chunkBytes + 5));
        assert.deepEqual(await listFiles(store), []);
        assert.equal(await facetOf(store).stat(scope, idOf(bytes)), null);
        throw new RangeError("the connection broke");
      };
      await assert.rejects(facetOf(store).put(scope, broken()), RangeError);
      assert.deepEqual(await listFiles(store), []);
      for (const part of [bytes, bytes.subarray(0, 2 * chunkBytes + 5)])
        assert.equal(await facetOf(store).stat(scope, idOf(part)), null);
      await assertInNoFile(under, bytes);
      assert.ok(Buffer.from(await readFile(store, await putFile(store, bytes))).equals(bytes));
    },
  },
  {
    id: "files/too-large",
    demand: "a file that is larger than the bound is refused at the byte too much, and nothing of it stays",
    requires,
    async run({ store }) {
      const bytes = bytesOf(chunkBytes + 10);
      let sent = 0;
      const counted = async function* (): AsyncGenerator<Uint8Array> {
        for await (const piece of pieces(bytes, 1000)) yield ((sent += piece.byteLength), piece);
      };
      const refusal = facetOf(store).put(scope, counted(), { maxBytes: 100_000 });
      assert.equal((await assertRefused(refusal, "FILE_TOO_LARGE")).details["limit"], 100_000);
      assert.ok(sent <= 101_000, "the rest is not read");
      assert.deepEqual(await listFiles(store), []);
      await facetOf(store).put(scope, pieces(bytes), { maxBytes: bytes.length });
    },
  },
  {
    id: "files/aborted",
    demand: "a put whose signal aborts keeps nothing",
    requires,
    async run({ store }) {
      const controller = new AbortController();
      const content = async function* (): AsyncGenerator<Uint8Array> {
        yield* pieces(bytesOf(chunkBytes + 1));
        controller.abort();
      };
      await assertRefused(facetOf(store).put(scope, content(), { signal: controller.signal }), "ABORTED");
      assert.deepEqual(await listFiles(store), []);
    },
  },
  {
    id: "files/not-bytes",
    demand: "content that is not bytes is refused",
    requires,
    async run({ store }) {
      const texts = async function* (): AsyncGenerator<unknown> {
        yield "text";
      };
      await assertRefused(facetOf(store).put(scope, texts() as AsyncGenerator<Uint8Array>), "INPUT_INVALID");
      assert.deepEqual(await listFiles(store), []);
    },
  },
  {
    id: "files/own",
    demand: "the bytes of a file are the store's own: a sender may use its buffer again",
    requires,
    async run({ store }) {
      const bytes = bytesOf(2 * chunkBytes);
      const reused = Buffer.alloc(chunkBytes);
      const content = async function* (): AsyncGenerator<Uint8Array> {
        for (const at of [0, chunkBytes]) {
          reused.set(bytes.subarray(at, at + chunkBytes));
          yield reused;
        }
      };
      const { id } = await facetOf(store).put(scope, content());
      reused.fill(0);
      for await (const piece of facetOf(store).get(scope, id)) piece.fill(0);
      assert.ok(Buffer.from(await readFile(store, id)).equals(bytes));
    },
  },
  {
    id: "files/delete",
    demand: "a deleted file is gone, also from the store's files and for a reader that has begun",
    requires,
    async run({ under, store }) {
      const bytes = bytesOf(20 * chunkBytes);
      const id = await putFile(store, bytes);
      const reader = facetOf(store).get(scope, id)[Symbol.asyncIterator]();
      await reader.next();
      assert.equal(await facetOf(store).delete(scope, id), true);
      await assertFails(drained(reader), "FILE_NOT_FOUND");
      await assertFails(readFile(store, id), "FILE_NOT_FOUND");
      assert.deepEqual(await listFiles(store), []);
      await assertInNoFile(under, bytes);
    },
  },
  {
    id: "files/no-record",
    demand: "a file changes no session",
    requires,
    async run({ store }) {
      const ref = await createSession(store, "a");
      const before = [await store.load(ref), await readRecords(store, ref), await store.list()];
      await putFile(store, bytesOf(10));
      assert.deepEqual([await store.load(ref), await readRecords(store, ref), await store.list()], before);
    },
  },
  {
    id: "files/pages",
    demand: "a list has every file once, over all of its pages, in order of id",
    requires,
    async run({ store }) {
      const ids: string[] = [];
      for (let index = 0; index < 510; index += 1) ids.push(await putFile(store, bytesOf(8, index + 1)));
      assert.deepEqual(
        (await listFiles(store)).map(({ id }) => id),
        ids.toSorted(),
      );
    },
  },
  {
    id: "files/other-handle",
    demand: "a file is seen by every handle, and is gone for every handle",
    requires,
    needs: ["another"],
    async run({ under, store }) {
      const other = await abilityOf(under, "another")();
      const bytes = bytesOf(chunkBytes + 1);
      const id = await putFile(store, bytes);
      assert.ok(Buffer.from(await readFile(other, id)).equals(bytes));
      await facetOf(other).delete(scope, id);
      await assertFails(readFile(store, id), "FILE_NOT_FOUND");
    },
  },
  {
    id: "files/reopen",
    demand: "a file outlives its handle",
    requires: (capabilities) => requires(capabilities) && capabilities.persistent,
    needs: ["reopen"],
    async run({ under, store }) {
      const bytes = bytesOf(chunkBytes + 1);
      const id = await putFile(store, bytes);
      assert.ok(Buffer.from(await readFile(await reopened(under), id)).equals(bytes));
    },
  },
  {
    id: "files/closed",
    demand: "a closed handle neither takes nor gives files",
    requires,
    async run({ store }) {
      const id = await putFile(store, bytesOf(10));
      await store.close();
      await assertFails(putFile(store, bytesOf(10)), "STORE_CLOSED");
      await assertFails(readFile(store, id), "STORE_CLOSED");
      await assertFails(facetOf(store).stat(scope, id), "STORE_CLOSED");
      await assertFails(facetOf(store).delete(scope, id), "STORE_CLOSED");
      await assertFails(listFiles(store), "STORE_CLOSED");
    },
  },
  {
    id: "files/codec",
    demand: "under a codec no file of the store holds the bytes, and each chunk is bound to its place",
    requires,
    needs: ["codec"],
    async run({ openWithCodec }) {
      const places: string[] = [];
      const codec = createXorCodec();
      const under = await openWithCodec({
        ...codec,
        encode: (plain, context) => {
          if (context.part === "file") places.push(JSON.stringify(context));
          return codec.encode(plain, context);
        },
      });
      const bytes = bytesOf(2 * chunkBytes + 1);
      const id = await putFile(under.store, bytes);
      await assertInNoFile(under, bytes);
      assert.ok(Buffer.from(await readFile(under.store, id)).equals(bytes));
      // A store may keep a file twice, and each copy has places of its own.
      assert.ok(places.length >= 3, "each chunk is encoded");
      assert.equal(new Set(places).size, places.length, "each chunk has a place of its own");
    },
  },
  {
    id: "files/codec-fails",
    demand: "a file that the codec does not take is not kept",
    requires,
    needs: ["codec"],
    async run({ openWithCodec }) {
      const codec = createXorCodec();
      const { store } = await openWithCodec({
        ...codec,
        encode: (plain, context) => {
          if (context.part === "file" && context.id.endsWith("/1")) throw new Error("no key");
          return codec.encode(plain, context);
        },
      });
      await assertRefused(putFile(store, bytesOf(2 * chunkBytes)), "CODEC_FAILED");
      assert.deepEqual(await listFiles(store), []);
    },
  },
];
