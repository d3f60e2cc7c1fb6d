import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { hasErrorCode, openSession, sessionRef, type SessionStore } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { createMemoryData } from "@throughline/store-memory/internal";
import { withFileStore } from "@throughline/file-store";
import { afterAll, beforeAll, beforeEach, describe, it, vi } from "vitest";
import type { Fault } from "./s3-server.ts";
import { credentials, type S3Process, startS3Process } from "./s3-process.ts";

// A machine under load answers late.
vi.setConfig({ testTimeout: 120_000 });

let s3: S3Process;
beforeAll(async () => {
  s3 = await startS3Process();
});
beforeEach(() => s3.ask({ clear: true, faults: [] }));
afterAll(() => s3.end());

const scope = { namespace: "", agentId: "main" };
const ref = sessionRef({ key: "agent:main:main" });
const mib = 1024 * 1024;

function bytesOf(length: number, seed = 1): Buffer {
  const bytes = Buffer.alloc(length + 4);
  for (let at = 0; at < length; at += 4) bytes.writeUInt32LE(Math.imul(at + seed, 2_654_435_761) >>> 0, at);
  return bytes.subarray(0, length);
}

async function* pieces(bytes: Uint8Array, size = 100_000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

function open(
  options: { readonly timeoutMs?: number; readonly retries?: number } = {},
  data = createMemoryData(),
): SessionStore {
  return withFileStore(createMemoryStore({ data }), {
    files: s3.fileStore({ timeoutMs: 20_000, retries: 3, ...options }),
  });
}

const put = async (store: SessionStore, bytes: Uint8Array): Promise<string> =>
  (await store.files!.put(scope, pieces(bytes))).id;
const read = async (store: SessionStore, id: string, range = {}): Promise<Buffer> =>
  Buffer.concat(await Array.fromAsync(store.files!.get(scope, id, range)));
const fault = (kind: Fault["kind"], times = 1, more: Partial<Fault> = {}): Fault => ({ kind, times, ...more });
const names = async (): Promise<readonly string[]> => (await s3.ask()).objects.map(({ name }) => name);

async function referTo(store: SessionStore, id: string): Promise<void> {
  await openSession(store, ref);
  await store.append(ref, [
    { type: "message", id: "r1", message: { role: "user", content: [{ type: "file", fileId: id }] } },
  ]);
}

describe("a storage that fails for a while", () => {
  const writes: readonly (readonly [string, Fault])[] = [
    ["answers 503", fault("unavailable", 2)],
    ["resets connections", fault("reset", 2)],
    ["loses its answers", fault("lost", 2)],
    ["does not answer in time", fault("slow", 1)],
    ["answers 200 with an error", fault("error-in-200", 2)],
  ];
  for (const [what, each] of writes)
    for (const [size, length] of [
      ["one request", 1000],
      ["parts", 17 * mib + 5],
    ] as const)
      it(`takes a file in ${size} when it ${what}`, async () => {
        const store = open({ retries: 6, ...(each.kind === "slow" ? { timeoutMs: 1500 } : {}) });
        const bytes = bytesOf(length);
        await s3.ask({ faults: [{ ...each }, { ...each, path: "files/" }, { ...each, path: "uploadId" }] });
        const id = await put(store, bytes);
        await s3.ask({ faults: [] });
        assert.equal(id, createHash("sha256").update(bytes).digest("hex"));
        assert.ok((await read(store, id)).equals(bytes));
        assert.deepEqual((await names()).length, 1, "nothing else is left");
      });

  for (const kind of ["cut", "slow", "reset", "unavailable"] as const)
    it(`gives a file whole, and a range of it, when reads meet "${kind}"`, async () => {
      const store = open(kind === "slow" ? { timeoutMs: 1000, retries: 6 } : {});
      const bytes = bytesOf(3 * mib);
      const id = await put(store, bytes);
      await s3.ask({ faults: [fault(kind, 3, { method: "GET", path: "files/" })] });
      assert.ok((await read(store, id)).equals(bytes));
      await s3.ask({ faults: [fault(kind, 2, { method: "GET", path: "files/" })] });
      assert.ok((await read(store, id, { from: 1000, to: 2 * mib })).equals(bytes.subarray(1000, 2 * mib)));
    });
});

describe("a storage that fails for good", () => {
  it("refuses a file, and keeps no part of it", async () => {
    const store = open({ retries: 1 });
    for (const [kind, path] of [
      ["unavailable", ""],
      ["wrong-etag", "partNumber"],
      ["denied", ""],
    ] as const) {
      await s3.ask({ faults: [fault(kind, 3, { method: "PUT", path })] });
      await assert.rejects(put(store, bytesOf(17 * mib)), (error) => hasErrorCode(error, "STORE_UNREACHABLE"), kind);
      const { objects, uploads } = await s3.ask({ faults: [] });
      assert.deepEqual([objects, uploads], [[], 0], kind);
    }
  });

  it("names what it refused, without a key", async () => {
    const wrong = s3.fileStore({ credentials: { ...credentials, secretAccessKey: "another" }, retries: 0 });
    const store = withFileStore(createMemoryStore(), { files: wrong });
    await assert.rejects(put(store, bytesOf(10)), (error: Error) => {
      assert.match(error.message, /refused a request: SignatureDoesNotMatch\./);
      return !JSON.stringify(error).includes("another") && !error.message.includes("another");
    });
  });

  it("ends a read whose object stays cut, or is silent, with a typed error", async () => {
    const store = open({ retries: 1 });
    const id = await put(store, bytesOf(mib));
    await s3.ask({ faults: [fault("reset", 99, { method: "GET", path: "/files/" })] });
    await assert.rejects(read(store, id), (error) => hasErrorCode(error, "STORE_UNREACHABLE"));
    await s3.ask({ faults: [fault("no-range", 99, { method: "GET", path: "/files/" })] });
    await assert.rejects(read(store, id, { from: 5, to: 10 }), (error) => hasErrorCode(error, "STORE_UNREACHABLE"));
  });

  it("tells a missing object and a changed one apart", async () => {
    const store = open();
    const id = await put(store, bytesOf(mib));
    await referTo(store, id);
    await s3.ask({ damage: id });
    await assert.rejects(read(store, id), (error) => hasErrorCode(error, "STORE_CORRUPT"));
    await s3.ask({ clear: true });
    await assert.rejects(read(store, id), (error) => hasErrorCode(error, "FILE_NOT_FOUND"));
    const [listed] = (await Array.fromAsync(store.files!.list(scope))).flat();
    assert.deepEqual(listed, { id, bytes: null, storedAtMs: null, references: 1 });
  });
});

describe("a purge", () => {
  it("is refused before it changes anything when the storage does not answer", async () => {
    const store = open({ retries: 0 });
    await referTo(store, await put(store, bytesOf(10)));
    await s3.ask({ faults: [fault("unavailable", 99)] });
    await assert.rejects(store.remove(ref, { purge: true }), (error) => hasErrorCode(error, "STORE_UNREACHABLE"));
    assert.notEqual(await store.load(ref), null);
  });

  it("of a session without files asks nothing of the storage", async () => {
    const store = open({ retries: 0 });
    await openSession(store, ref);
    await s3.ask({ faults: [fault("unavailable", 99)] });
    await store.remove(ref, { purge: true });
    assert.equal(await store.load(ref), null);
  });

  it("whose process ends before the objects are deleted is finished by the next list", async () => {
    const data = createMemoryData();
    const store = open({ retries: 0 }, data);
    const id = await put(store, bytesOf(10));
    await referTo(store, id);
    await s3.ask({ faults: [fault("unavailable", 99, { method: "DELETE" })] });
    await assert.rejects(store.remove(ref, { purge: true }), (error) => hasErrorCode(error, "STORE_UNREACHABLE"));
    assert.equal(await store.load(ref), null);
    assert.equal((await names()).length, 2, "the object and the note");
    await s3.ask({ faults: [] });
    const later = open({}, data);
    assert.deepEqual(await Array.fromAsync(later.files!.list(scope)), []);
    assert.deepEqual(
      (await names()).map((name) => name.includes("deletions/")),
      [true],
      "the note may be of a running purge",
    );
    await s3.ask({ aheadMs: -2 * 60 * 60 * 1000 });
  });

  it("does not delete what was put again after its note", async () => {
    const data = createMemoryData();
    const store = open({ retries: 0 }, data);
    const id = await put(store, bytesOf(10));
    await referTo(store, id);
    await s3.ask({ faults: [fault("unavailable", 99, { method: "DELETE" })] });
    await assert.rejects(store.remove(ref, { purge: true }));
    await s3.ask({ faults: [] });
    await put(store, bytesOf(10));
    const [listed] = (await Array.fromAsync(store.files!.list(scope))).flat();
    assert.deepEqual([listed?.id, listed?.bytes, listed?.references], [id, 10, 0]);
    assert.ok((await read(store, id)).equals(bytesOf(10)));
  });
});

describe("what a killed put leaves", () => {
  it("is removed a day later, and no sooner", async () => {
    const files = s3.fileStore();
    await s3.ask({ aheadMs: -25 * 60 * 60 * 1000 });
    await files.write("_default/main/uploads/old", pieces(bytesOf(10)));
    await s3.ask({ aheadMs: 25 * 60 * 60 * 1000 });
    await files.write("_default/main/uploads/new", pieces(bytesOf(10)));
    await Array.fromAsync(open().files!.list(scope));
    assert.deepEqual(await names(), ["_default/main/uploads/new"]);
  });
});

describe("the names of objects", () => {
  it("keep tenants, agents and a prefix apart", async () => {
    const store = withFileStore(createMemoryStore(), { files: s3.fileStore({ prefix: "our/" }) });
    const [one, two] = [
      { namespace: "a", agentId: "b" },
      { namespace: "a", agentId: "bb" },
    ];
    const { id } = await store.files!.put(one, pieces(bytesOf(10)));
    assert.equal(await store.files!.stat(two, id), null);
    await store.files!.put(two, pieces(bytesOf(10)));
    assert.equal(await store.files!.delete(one, id), true);
    assert.equal((await store.files!.stat(two, id))?.bytes, 10);
    assert.deepEqual(
      (await names()).map((name) => name.split("/").slice(0, 4).join("/")),
      ["our/a/bb/files"],
    );
  });
});

describe("files that the store kept before", () => {
  it("stay readable, listed and deletable", async () => {
    const data = createMemoryData();
    const id = await put(createMemoryStore({ data }), bytesOf(10));
    const store = open({}, data);
    const other = await put(store, bytesOf(11));
    assert.ok((await read(store, id)).equals(bytesOf(10)));
    assert.deepEqual(
      new Set((await Array.fromAsync(store.files!.list(scope))).flat().map((each) => each.id)),
      new Set([id, other]),
    );
    assert.equal(await store.files!.delete(scope, id), true);
    assert.equal(await store.files!.stat(scope, id), null);
  });
});
