import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { crc32 } from "node:zlib";
import Database from "better-sqlite3";
import type { SessionStore, ThroughlineError } from "@throughline/core";
import { eraseSessions } from "@throughline/encryption";
import { createSqliteStore } from "@throughline/store-sqlite";
import { assert, describe, expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createSession, testFolder } from "./test-folder.ts";
import { describeStoreConformance } from "@throughline/store-conformance";
import { describeEncryptedStore, encryptedRunner, encryptionForTests } from "@throughline/test-kit/encryption";
import { type CheckedHead, headChecksum } from "../src/row-checksums.ts";
import { openUnderTest } from "./store-under-test.ts";

const encryption = await encryptionForTests();

describeStoreConformance({
  name: "store-sqlite",
  runner: encryptedRunner(),
  open: () => openUnderTest(),
  openWithCodec: (codec) => openUnderTest(codec),
  codec: encryption,
});

describeEncryptedStore({ name: "store-sqlite", encryption, open: (codec) => openUnderTest(codec) });

describe("a backup of store-sqlite with encryption", () => {
  it("has an erased session no more, and each other one still", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, codec: encryption });
    for (const name of ["a", "b", "c"]) await store.append(await createSession(store, name), [say(`text of ${name}`)]);
    await store.maintenance?.backup(`${path}.backup`);
    await eraseSessions(store, encryption, [refOf("b")], { reason: "asked for" });
    await using backup = createSqliteStore({ path: `${path}.backup`, codec: encryption });
    const refusal = { code: "CODEC_FAILED", details: { reason: "KEY_DESTROYED" } };
    await expect(Array.fromAsync(backup.read(refOf("b")))).rejects.toMatchObject(refusal);
    for (const name of ["a", "c"]) {
      const [page] = await Array.fromAsync(backup.read(refOf(name)));
      expect(page?.records[0]?.record["message"]).toMatchObject({ content: `text of ${name}` });
    }
    const listed = (await backup.list()).sessions.map(({ ref, entry }) => `${ref.key} ${String(entry["label"])}`);
    const erased = `${refOf("b").key} erased on ${new Date().toISOString().slice(0, 4)}`;
    expect(listed.toSorted()).toEqual([
      `${refOf("a").key} undefined`,
      expect.stringContaining(erased),
      `${refOf("c").key} undefined`,
    ]);
  });
});

describe("a session of a backup whose key was destroyed", () => {
  it("is purged beside a fork that shares its records", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, codec: encryption });
    const origin = await createSession(store, "a");
    await store.append(origin, [say("shared")]);
    await store.fork?.fork(origin, refOf("fork"), { sessionId: "session-fork" });
    await store.append(refOf("fork"), [say("own")]);
    await store.maintenance?.backup(`${path}.backup`);
    await eraseSessions(store, encryption, [origin], { reason: "asked for", keepForks: true });
    await using backup = createSqliteStore({ path: `${path}.backup`, codec: encryption });
    await backup.remove(origin, { purge: true });
    expect(await backup.load(origin)).toBeNull();
    const refusal = { code: "CODEC_FAILED", details: { reason: "KEY_DESTROYED" } };
    await expect(Array.fromAsync(backup.read(refOf("fork")))).rejects.toMatchObject(refusal);
    const [page] = await Array.fromAsync(backup.read(refOf("fork"), { afterSeq: 1 }));
    expect(page?.records[0]?.record["message"]).toMatchObject({ content: "own" });
    await backup.remove(refOf("fork"), { purge: true });
    expect((await backup.list({ state: "any" })).sessions).toEqual([]);
  });
});

/** Returns the tokens of an index. */
function tokensIn(path: string): readonly string[] {
  const database = new Database(path);
  database.exec("CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, store_search, row)");
  const tokens = database.prepare<[], string>("SELECT term FROM temp.words ORDER BY term").pluck().all();
  database.close();
  return tokens;
}

async function found(store: SessionStore, text: string): Promise<readonly string[]> {
  const hits = await Array.fromAsync(store.search?.search({ text }) ?? []);
  return hits.map(({ sessionId }) => sessionId).toSorted();
}

describe("the index of store-sqlite with encryption", () => {
  it("has the tokens of an erased session no more, however long it was", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, codec: encryption });
    await store.append(await createSession(store, "kept"), [say("shared kept")]);
    expect(await found(store, "kept")).toEqual(["session-kept"]);
    const before = tokensIn(path);
    expect(before).toEqual(
      ["kept", "share", "shared", "role user"].map((word) => encryption.searchToken?.(word, "")).toSorted(),
    );
    for (const count of [3, 350, 2100]) {
      const ref = await createSession(store, "gone");
      for (let at = 0; at < count; at += 350) {
        const many = Array.from({ length: Math.min(350, count - at) }, (_, index) => say(`shared gone ${at + index}`));
        await store.append(ref, many);
      }
      expect((await found(store, "gone"))[0]).toBe("session-gone");
      // On a busy machine a search reads the records while the index is filled.
      const filled = before.length + 1 + count;
      await expect.poll(async () => (await found(store, "kept")) && tokensIn(path).length).toBe(filled);
      await eraseSessions(store, encryption, [ref], { reason: "asked for" });
      expect(await found(store, "shared")).toEqual(["session-kept"]);
      // Nothing of the erased session is left; the tokens of the others may be on their way into the index.
      expect(tokensIn(path).filter((token) => !before.includes(token))).toEqual([]);
      await expect.poll(async () => (await found(store, "kept")) && tokensIn(path)).toEqual(before);
    }
  });

  it("of a copy from before an erasure finds the others, and loses the tokens with the erased session", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, codec: encryption });
    for (const name of ["erased", "other"]) await store.append(await createSession(store, name), [say(`both ${name}`)]);
    expect(await found(store, "both")).toEqual(["session-erased", "session-other"]);
    const raw = new Database(path);
    raw.exec(`VACUUM INTO '${path}.copy'`);
    raw.close();
    expect(tokensIn(`${path}.copy`)).toContain(encryption.searchToken?.("erased", ""));
    await eraseSessions(store, encryption, [refOf("erased")], { reason: "asked for" });
    await using copy = createSqliteStore({ path: `${path}.copy`, codec: encryption });
    expect(await found(copy, "both")).toEqual(["session-other"]);
    await copy.remove(refOf("erased"), { purge: true });
    expect(tokensIn(`${path}.copy`)).not.toContain(encryption.searchToken?.("erased", ""));
    expect(await found(copy, "both")).toEqual(["session-other"]);
  });
});

describe("an attacker who writes to the file of store-sqlite with encryption", () => {
  it("moves no payload to another record, session or agent, and cuts none, without an error of the reader", async () => {
    const path = join(testFolder(), "store.db");
    const store = createSqliteStore({ path, codec: encryption, searchFill: "on-demand" });
    const other = { namespace: "", agentId: "other", key: "agent:other:c" };
    await store.append(await createSession(store, "a"), [say("one"), say("two")]);
    await store.append(await createSession(store, "b"), [say("three"), say("four")]);
    await store.save(other, { sessionId: "session-c" }, { ifRevision: null });
    await store.append(other, [say("five"), say("six")]);
    await store.close();
    const database = new Database(path);
    const rows = database
      .prepare<[], { readonly record: number; readonly text: Buffer }>(
        "SELECT record, text FROM store_records ORDER BY record",
      )
      .all();
    const put = (record: number, text: Buffer): void => {
      const head = database
        .prepare<[number], { readonly session: number } & CheckedHead>(
          "SELECT session, seq, id, parent_id AS parentId, type, side, ts_ms AS tsMs, stored_at_ms AS storedAtMs, bytes, crc, role, tool_name AS toolName FROM store_records WHERE record = ?",
        )
        .get(record);
      assert(head !== undefined);
      const crc = crc32(text);
      database
        .prepare("UPDATE store_records SET text = ?, crc = ?, head_crc = ? WHERE record = ?")
        .run(text, crc, headChecksum(head.session, { ...head, crc }), record);
    };
    const readAll = async (): Promise<readonly unknown[]> => {
      await using reader = createSqliteStore({ path, codec: encryption, searchFill: "on-demand" });
      const answers: unknown[] = [];
      for (const ref of [refOf("a"), refOf("b"), other])
        try {
          for await (const { records } of reader.read(ref))
            answers.push(...records.map(({ record }) => record["message"]));
        } catch (error) {
          answers.push((error as ThroughlineError).details["reason"]);
        }
      return answers;
    };
    const sound = await readAll();
    expect(sound.length).toBe(6);
    let attacks = 0;
    const forged: (readonly [number, Buffer])[] = rows.flatMap(({ record, text }) => [
      ...rows.filter((each) => each.record !== record).map((each) => [record, each.text] as const),
      ...[1, 16, 17, 33].map((cut) => [record, text.subarray(0, text.length - cut)] as const),
    ]);
    for (const [record, text] of forged) {
      put(record, text);
      const answers = await readAll();
      expect(answers.filter((answer) => answer === "PAYLOAD_ALTERED").length, `record ${record}`).toBe(1);
      expect(
        answers
          .filter((answer) => typeof answer === "object")
          .every((answer) => sound.some((each) => isDeepStrictEqual(each, answer))),
      ).toBe(true);
      put(record, rows.find((each) => each.record === record)?.text ?? text);
      attacks += 1;
    }
    expect(attacks).toBe(54);
    expect(await readAll()).toEqual(sound);
    database.close();
  });
});

describe("vectors of store-sqlite with encryption", () => {
  it("are not found when they were changed, cut, or moved to another session or record; the others are", async () => {
    const path = join(testFolder(), "store.db");
    const scope = { namespace: "", agentId: "main" };
    const model = "test@64";
    const vector = Float32Array.from({ length: 64 }, (_, at) => Math.sin(at + 1));
    const store = createSqliteStore({ path, codec: encryption });
    for (const name of ["a", "b"]) {
      const ref = await createSession(store, name);
      await store.append(ref, [say("one"), say("two")]);
    }
    for (const { ref, mark } of (await store.vectors?.pending(scope, { model }))?.ranges ?? []) {
      const vectors = [1, 2].map((seq) => ({ firstSeq: seq, lastSeq: seq, part: 0, vector }));
      await store.vectors?.put(ref, { model, mark, fromSeq: 1, toSeq: 2, resumeSeq: 2, vectors });
    }
    await store.close();
    const database = new Database(path);
    const rows = database
      .prepare<[], { vector: number; code: Buffer; numbers: Buffer }>("SELECT * FROM store_vectors")
      .all();
    const put = database.prepare<[Buffer, Buffer, number]>(
      "UPDATE store_vectors SET code = ?, numbers = ? WHERE vector = ?",
    );
    const found = async (): Promise<number> => {
      await using reader = createSqliteStore({ path, codec: encryption });
      return ((await reader.vectors?.nearest({ ...scope, model, vector })) ?? []).length;
    };
    expect(await found()).toBe(4);
    let attacks = 0;
    for (const { vector: number, code, numbers } of rows) {
      const flipped = [0, 1, 17, 33, 50, numbers.length - 1].map((at) => {
        const bytes = Buffer.from(numbers);
        bytes[at] = (bytes[at] ?? 0) ^ 1;
        return bytes;
      });
      const moved = rows.filter((row) => row.vector !== number).map((row) => row.numbers);
      for (const forged of [...flipped, ...moved, numbers.subarray(0, -1), numbers.subarray(0, 20), Buffer.alloc(0)]) {
        put.run(code, forged, number);
        expect(await found()).toBe(3);
        attacks += 1;
      }
      // A code only chooses what is compared.
      put.run(Buffer.from(code).fill(0), numbers, number);
      expect(await found()).toBe(4);
      put.run(code, numbers, number);
    }
    expect(attacks).toBe(48);
    database.close();
  });
});

describe("a record of store-sqlite with encryption whose key id has a flipped bit", () => {
  it("reads as damage, and a search goes on without it", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, codec: encryption, searchFill: "on-demand" });
    const ref = await createSession(store, "a");
    await store.append(ref, [say("harbor one"), say("harbor two"), say("harbor three")]);
    const database = new Database(path);
    database.function("flipped", { deterministic: true }, (bytes) => {
      const changed = Buffer.from(bytes as Buffer);
      changed[1] = (changed[1] ?? 0) ^ 1;
      return changed;
    });
    database.exec("UPDATE store_records SET text = flipped(text) WHERE seq = 1");
    expect(await found(store, "harbor")).toEqual(["session-a", "session-a"]);
    database.exec("UPDATE store_records SET text = flipped(text) WHERE seq = 3");
    database.close();
    expect(await found(store, "harbor")).toEqual(["session-a"]);
    await expect(Array.fromAsync(store.read(ref))).rejects.toMatchObject({ code: "STORE_CORRUPT" });
  });
});
