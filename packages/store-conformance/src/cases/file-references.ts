import assert from "node:assert/strict";
import { assertFails, assertRefused, createSession, readRecords, refOf, userDraft } from "../case-tools.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import {
  assertInNoFile,
  bytesOf,
  countReferences,
  facetOf,
  fileDraft,
  idOf,
  listFiles,
  purge,
  putFile,
  readFile,
  requires,
  scope,
} from "../file-tools.ts";

export const fileReferenceCases: readonly ConformanceCase[] = [
  {
    id: "files/references",
    demand: "each record that names a file counts once; a record of another program that holds its bytes does not",
    requires,
    async run({ store }) {
      const [used, unused] = [await putFile(store, bytesOf(10)), await putFile(store, bytesOf(11))];
      const ref = await createSession(store, "a");
      await store.append(ref, [fileDraft([used, used]), fileDraft([used]), userDraft(`file ${unused}`)]);
      const result = { role: "toolResult", toolCallId: "c", toolName: "t", content: [{ type: "file", fileId: used }] };
      await store.append(ref, [{ type: "message", message: result }]);
      await store.append(ref, [
        { type: "message", message: { role: "user", content: [{ type: "file", data: unused }] } },
      ]);
      assert.deepEqual(await countReferences(store), { [used]: 3, [unused]: 0 });
    },
  },
  {
    id: "files/refused-append",
    demand: "an append that is refused refers to nothing",
    requires,
    async run({ store }) {
      const id = await putFile(store, bytesOf(10));
      const ref = await createSession(store, "a");
      await assertRefused(store.append(ref, [fileDraft([id])], { expect: { head: "other" } }), "APPEND_CONFLICT");
      assert.deepEqual(await countReferences(store), { [id]: 0 });
    },
  },
  {
    id: "files/missing",
    demand: "a file that records name and the store lacks is listed as missing until it is put",
    requires,
    async run({ store }) {
      const bytes = bytesOf(10);
      const ref = await createSession(store, "a");
      await store.append(ref, [fileDraft([idOf(bytes)])]);
      const missing = { id: idOf(bytes), bytes: null, storedAtMs: null, references: 1 };
      assert.deepEqual(await listFiles(store), [missing]);
      await assertFails(readFile(store, missing.id), "FILE_NOT_FOUND");
      const id = await putFile(store, bytes);
      assert.deepEqual(await countReferences(store), { [id]: 1 });
      assert.equal(await facetOf(store).delete(scope, id), true);
      assert.deepEqual(await listFiles(store), [missing]);
      assert.equal((await readRecords(store, ref)).length, 1);
    },
  },
  {
    id: "files/purge",
    demand: "a purge deletes each file that only this session referred to, and no other",
    requires,
    async run({ under, store }) {
      const bytes = bytesOf(1000);
      const own = await putFile(store, bytes);
      const unused = await putFile(store, bytesOf(11));
      const ref = await createSession(store, "a");
      await store.append(ref, [fileDraft([own]), fileDraft([own])]);
      await purge(store, ref);
      assert.deepEqual(await countReferences(store), { [unused]: 0 });
      await assertInNoFile(under, bytes);
    },
  },
  {
    id: "files/purge-shared",
    demand: "of two sessions that share a file, the first purge keeps it and the second deletes it",
    requires,
    async run({ store }) {
      const id = await putFile(store, bytesOf(10));
      const refs = [await createSession(store, "a"), await createSession(store, "b")] as const;
      for (const ref of refs) await store.append(ref, [fileDraft([id])]);
      await purge(store, refs[0]);
      assert.deepEqual(await countReferences(store), { [id]: 1 });
      assert.equal((await readFile(store, id)).byteLength, 10);
      await purge(store, refs[1]);
      assert.deepEqual(await listFiles(store), []);
    },
  },
  {
    id: "files/purge-other-scope",
    demand: "a reference counts in its own namespace and agent only",
    requires,
    async run({ store }) {
      const other = { namespace: "tenant", agentId: "main" };
      const id = await putFile(store, bytesOf(10));
      await putFile(store, bytesOf(10), other);
      const refs = [await createSession(store, "a"), await createSession(store, "a", other)] as const;
      for (const ref of refs) await store.append(ref, [fileDraft([id])]);
      await purge(store, refs[0]);
      assert.equal(await facetOf(store).stat(scope, id), null);
      assert.equal((await readFile(store, id, { at: other })).byteLength, 10);
      assert.deepEqual(
        (await listFiles(store, other)).map(({ references }) => references),
        [1],
      );
    },
  },
  {
    id: "files/archived",
    demand: "an archived session, and one that was reset, keeps its files",
    requires,
    async run({ store }) {
      const id = await putFile(store, bytesOf(10));
      const ref = await createSession(store, "a");
      await store.append(ref, [fileDraft([id])]);
      await store.remove(ref);
      assert.deepEqual(await countReferences(store), { [id]: 1 });
      await store.move({ ...ref, archiveId: "session-a" }, { kind: "restore" });
      const revision = (await store.load(ref))?.revision ?? null;
      await store.save(ref, { sessionId: "session-b" }, { ifRevision: revision });
      assert.deepEqual(await countReferences(store), { [id]: 1 });
      await purge(store, { ...ref, archiveId: "session-a" });
      assert.deepEqual(await listFiles(store), []);
    },
  },
  {
    id: "files/redact",
    demand: "a redaction deletes each file that only the record referred to, and no other",
    requires,
    async run({ under, store }) {
      const bytes = bytesOf(1000);
      const [own, shared] = [await putFile(store, bytes), await putFile(store, bytesOf(11))];
      const ref = await createSession(store, "a");
      await store.append(ref, [fileDraft([own, shared], { id: "r1" }), fileDraft([shared], { id: "r2" })]);
      await store.redact(ref, ["r1"], { reason: "asked for" });
      assert.deepEqual(await countReferences(store), { [shared]: 1 });
      await assertInNoFile(under, bytes);
      await store.redact(ref, ["r1"], { reason: "again" });
      assert.deepEqual(await countReferences(store), { [shared]: 1 });
      await store.redact(ref, ["r2"], { reason: "asked for" });
      assert.deepEqual(await listFiles(store), []);
    },
  },
  {
    id: "files/redact-texts",
    demand: "a redaction of texts keeps the files of the record",
    requires,
    async run({ store }) {
      const id = await putFile(store, bytesOf(10));
      const ref = await createSession(store, "a");
      await store.append(ref, [fileDraft([id], { id: "r1" })]);
      await store.redact(ref, ["r1"], { reason: "asked for", texts: ["see"] });
      assert.deepEqual(await countReferences(store), { [id]: 1 });
    },
  },
  {
    id: "files/fork",
    demand: "a fork refers to the files of the records that it shares, and keeps them when its origin is purged",
    requires: (capabilities) => requires(capabilities) && capabilities.fork,
    async run({ store }) {
      const [shared, later] = [await putFile(store, bytesOf(10)), await putFile(store, bytesOf(11))];
      const ref = await createSession(store, "a");
      await store.append(ref, [fileDraft([shared])]);
      await store.fork?.fork(ref, refOf("b"), { sessionId: "session-b" });
      await store.append(ref, [fileDraft([later])]);
      await store.fork?.fork(ref, refOf("c"), { atSeq: 1, sessionId: "session-c" });
      assert.deepEqual(await countReferences(store), { [shared]: 3, [later]: 1 });
      await purge(store, ref);
      assert.deepEqual(await countReferences(store), { [shared]: 2 });
      await purge(store, refOf("b"));
      assert.equal((await readFile(store, shared)).byteLength, 10);
      await purge(store, refOf("c"));
      assert.deepEqual(await listFiles(store), []);
    },
  },
  {
    id: "files/redact-fork",
    demand: "a redaction of a shared record deletes its file, whichever session it is asked of",
    requires: (capabilities) => requires(capabilities) && capabilities.fork,
    async run({ store }) {
      for (const asked of ["origin", "fork"]) {
        const id = await putFile(store, bytesOf(10));
        const origin = await createSession(store, `${asked}-origin`);
        const fork = refOf(`${asked}-fork`);
        await store.append(origin, [fileDraft([id], { id: "r1" })]);
        await store.fork?.fork(origin, fork, { sessionId: `session-${asked}-fork` });
        assert.deepEqual(await countReferences(store), { [id]: 2 });
        await store.redact(asked === "fork" ? fork : origin, ["r1"], { reason: "asked for" });
        assert.deepEqual(await listFiles(store), []);
      }
    },
  },
];
