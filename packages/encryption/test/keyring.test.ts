import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  symlinkSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import type { CodecContext } from "@throughline/core/internal";
import { createKeyring, openEncryption } from "@throughline/encryption";
import { assert, describe, expect, it } from "vitest";
import { KeyringEncryption } from "../src/encryption.ts";
import { makeSlots } from "../src/keyring-slots.ts";
import { keyringPath, mainKey, newEncryption, opened } from "./temporary-keyring.ts";

const place: CodecContext = { namespace: "", agentId: "main", sessionId: "s", id: "r1", part: "record" };
const text = Buffer.from("a planted word");
const bytesIn = (number: number): { readonly key: Buffer } => ({ key: Buffer.alloc(32, number) });

describe("a keyring", () => {
  it("is a file for its owner, appears whole, and is never overwritten", async () => {
    const keyring = keyringPath();
    await createKeyring({ keyring, mainKey });
    expect(statSync(keyring).mode & 0o777).toBe(0o600);
    expect(readdirSync(dirname(keyring))).toEqual(["keys.db"]);
    const before = readFileSync(keyring);
    await expect(createKeyring({ keyring, mainKey })).rejects.toMatchObject({ code: "KEYRING_EXISTS" });
    expect(readFileSync(keyring)).toEqual(before);
  });

  it("is not made by a key service that does not return what it was given", async () => {
    const keyring = keyringPath();
    const asked: string[] = [];
    const wrapping = new Map<string, Uint8Array>();
    const service = {
      wrap: async (key: Uint8Array) => {
        const wrapped = Buffer.alloc(48, asked.push("wrap"));
        wrapping.set(wrapped.toString("hex"), Uint8Array.from(key));
        key.fill(0);
        return wrapped;
      },
      unwrap: async (wrapped: Uint8Array) => {
        asked.push("unwrap");
        return wrapping.get(Buffer.from(wrapped).toString("hex")) ?? Buffer.alloc(32);
      },
    };
    for (const given of [Buffer.alloc(32, 5), Buffer.alloc(31, 5)]) {
      const lying = { service: { ...service, unwrap: async () => given } };
      const code = given.byteLength === 32 ? "KEYRING_IO" : "MAIN_KEY_WRONG";
      await expect(createKeyring({ keyring, mainKey: lying })).rejects.toMatchObject({ code, outcome: "not-applied" });
      expect(existsSync(keyring)).toBe(false);
    }
    asked.length = 0;
    await createKeyring({ keyring, mainKey: { service } });
    expect(asked).toEqual(["wrap", "unwrap"]);
    const codec = await opened(keyring, { service });
    expect(asked).toEqual(["wrap", "unwrap", "unwrap"]);
    await codec.rotateMainKey({ service });
    expect(asked.slice(3)).toEqual(["wrap", "unwrap"]);
  });

  it("that other users can open is closed to them, and a link to it stays one", async () => {
    const keyring = keyringPath();
    await createKeyring({ keyring, mainKey });
    symlinkSync(keyring, `${keyring}.link`);
    for (const path of [keyring, `${keyring}.link`]) {
      chmodSync(keyring, 0o666);
      await opened(path);
      expect([statSync(keyring).mode & 0o777, lstatSync(`${keyring}.link`).isSymbolicLink()]).toEqual([0o600, true]);
    }
    // No keyring is made where a link leads, or over one.
    symlinkSync(`${keyring}.nowhere`, `${keyring}.dangling`);
    await expect(createKeyring({ keyring: `${keyring}.dangling`, mainKey })).rejects.toMatchObject({
      code: "KEYRING_EXISTS",
    });
    expect(existsSync(`${keyring}.nowhere`)).toBe(false);
    // What is no keyring is left as it is.
    writeFileSync(`${keyring}.text`, "text", { mode: 0o644 });
    await expect(opened(`${keyring}.text`)).rejects.toMatchObject({ code: "KEYRING_DAMAGED" });
    expect(statSync(`${keyring}.text`).mode & 0o777).toBe(0o644);
  });

  it("gets a new recovery key, which shuts out the old one alone", async () => {
    const keyring = keyringPath();
    const { recoveryKey: old } = await createKeyring({ keyring, mainKey });
    const codec = await opened(keyring);
    const coded = codec.encode(text, place);
    const { recoveryKey } = await codec.replaceRecoveryKey();
    expect(recoveryKey).not.toBe(old);
    for (const by of [mainKey, { recoveryKey }]) expect((await opened(keyring, by)).decode(coded, place)).toEqual(text);
    await expect(opened(keyring, { recoveryKey: old })).rejects.toMatchObject({ code: "MAIN_KEY_WRONG" });
    await (await opened(keyring)).rotateMainKey(bytesIn(8));
    await expect(codec.replaceRecoveryKey()).rejects.toMatchObject({ code: "MAIN_KEY_WRONG" });
    expect((await opened(keyring, bytesIn(8))).decode(coded, place)).toEqual(text);
  });

  it("holds no key that opens anything, in any form", async () => {
    const keyring = keyringPath();
    const { recoveryKey } = await createKeyring({ keyring, mainKey });
    (await opened(keyring)).encode(text, place);
    const content = readFileSync(keyring).toString("latin1");
    for (const form of [bytesIn(7).key.toString("latin1"), bytesIn(7).key.toString("hex"), recoveryKey.slice(0, 11)])
      expect(content).not.toContain(form);
  });

  it.each([
    ["missing", "KEYRING_NOT_FOUND", (_path: string) => undefined],
    ["empty", "KEYRING_DAMAGED", (path: string) => writeFileSync(path, "")],
    ["a text", "KEYRING_DAMAGED", (path: string) => writeFileSync(path, "these are my keys\n".repeat(100))],
  ])("that is %s is refused, and nothing is made", async (_what, code, make) => {
    const keyring = keyringPath();
    make(keyring);
    const before = existsSync(keyring) ? readFileSync(keyring) : null;
    await expect(openEncryption({ keyring, mainKey })).rejects.toMatchObject({ code, outcome: "not-applied" });
    expect(existsSync(keyring) ? readFileSync(keyring) : null).toEqual(before);
  });

  it("that was replaced while it was open makes no key", async () => {
    const keyring = keyringPath();
    await createKeyring({ keyring, mainKey });
    const codec = await opened(keyring);
    const coded = codec.encode(text, place);
    copyFileSync(keyring, `${keyring}.copy`);
    renameSync(`${keyring}.copy`, keyring);
    expect(() => codec.encode(text, { ...place, sessionId: "t" })).toThrow("was replaced or removed");
    expect(codec.decode(coded, place)).toEqual(text);
  });

  it("whose rows were exchanged opens neither key", async () => {
    const keyring = keyringPath();
    await createKeyring({ keyring, mainKey });
    const codec = await opened(keyring);
    const coded = ["s", "t"].map((sessionId) => codec.encode(text, { ...place, sessionId }));
    codec.close();
    const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
    const database = new DatabaseSync(keyring);
    database.exec("UPDATE secrets SET number = -1 WHERE number = 1; UPDATE secrets SET number = 1 WHERE number = 2");
    database.exec("UPDATE secrets SET number = 2 WHERE number = -1");
    database.close();
    const changed = await opened(keyring);
    for (const [index, sessionId] of ["s", "t"].entries())
      expect(() => changed.decode(coded[index]!, { ...place, sessionId })).toThrow("stands in the place of another");
  });

  it("is used by several handles at once: one key for each session, and each reads what others wrote", async () => {
    const keyring = keyringPath();
    await createKeyring({ keyring, mainKey });
    const handles = [await opened(keyring), await opened(keyring), await opened(keyring)];
    for (let session = 0; session < 20; session++) {
      const at = { ...place, sessionId: `s${session}` };
      const coded = handles.map((handle) => handle.encode(text, at));
      expect(new Set(coded.map((each) => Buffer.from(each.subarray(1, 17)).toString("hex"))).size).toBe(1);
      for (const handle of handles) for (const each of coded) expect(handle.decode(each, at)).toEqual(text);
    }
    expect(handles[0]?.status()).toMatchObject({ keys: 20, destroyedKeys: 0 });
  });

  it("gives keys by its scope", async () => {
    for (const [scope, keys] of [
      ["session", 5],
      ["agent", 3],
      ["namespace", 2],
    ] as const) {
      const codec = await newEncryption(scope);
      for (const [namespace, agentId, sessionId] of [
        ["", "main", "s"],
        ["", "main", "t"],
        ["", "other", "s"],
        ["n", "main", "s"],
      ] as const)
        codec.encode(text, { ...place, namespace, agentId, sessionId });
      // A file belongs to an agent.
      codec.encode(text, { ...place, sessionId: "", id: "upload/0", part: "file" });
      expect(codec.status().keys, scope).toBe(keys);
    }
  });

  it("that was closed neither encrypts nor decrypts", async () => {
    const codec = await newEncryption();
    const coded = codec.encode(text, place);
    codec.close();
    expect(() => codec.encode(text, place)).toThrow("closed");
    expect(() => codec.decode(coded, place)).toThrow("closed");
  });

  it("refuses options that are wrong, and shows no key in the message", async () => {
    const keyring = keyringPath();
    const wrong = { passphrase: "hunter2", key: Buffer.alloc(32) };
    const refusal = createKeyring({ keyring, mainKey: wrong as never });
    await expect(refusal).rejects.toMatchObject({ code: "INPUT_INVALID" });
    await expect(refusal).rejects.not.toThrow("hunter2");
    await expect(createKeyring({ keyring, mainKey: { key: Buffer.alloc(31) } })).rejects.toMatchObject({
      code: "MAIN_KEY_WRONG",
    });
    expect(existsSync(keyring)).toBe(false);
  });
});

describe("the rotation of the main key", () => {
  it("is noticed by a handle that has the old main key: it makes no key that nobody can open", async () => {
    const keyring = keyringPath();
    await createKeyring({ keyring, mainKey });
    const [codec, other] = [await opened(keyring), await opened(keyring)];
    await codec.rotateMainKey(bytesIn(8));
    expect(() => other.encode(text, place)).toThrow("replaced the main key");
    const coded = codec.encode(text, place);
    expect(() => other.decode(coded, place)).toThrow("replaced the main key");
  });

  it("is neither begun nor finished by a handle that has the old main key", async () => {
    const keyring = keyringPath();
    await createKeyring({ keyring, mainKey });
    const [codec, other] = [await opened(keyring), await opened(keyring)];
    assert(codec instanceof KeyringEncryption);
    const coded = codec.encode(text, place);
    // A rotation that was interrupted after its first commit.
    const { id: keyringId, nextGeneration: generation } = codec.keyring;
    const master = Buffer.alloc(32, 9);
    codec.keyring.beginRotation(master, await makeSlots(bytesIn(8), { keyringId, generation, master }));
    for (const refusal of [other.finishRotation(), other.rotateMainKey(bytesIn(9))])
      await expect(refusal).rejects.toMatchObject({ code: "MAIN_KEY_WRONG", outcome: "not-applied" });
    const resumed = await opened(keyring, bytesIn(8));
    expect(resumed.decode(coded, place)).toEqual(text);
    await resumed.finishRotation();
    await expect(other.rotateMainKey(bytesIn(9))).rejects.toMatchObject({ code: "MAIN_KEY_WRONG" });
    const again = await opened(keyring, bytesIn(8));
    expect(again.decode(coded, place)).toEqual(text);
    expect(again.status().isRotating).toBe(false);
  });
});

describe("the destruction of keys", () => {
  it("reaches other handles", async () => {
    const keyring = keyringPath();
    await createKeyring({ keyring, mainKey });
    let nowMs = 1;
    const clock = { nowMs: () => nowMs, sleep: async () => undefined };
    const other = await openEncryption({ keyring, mainKey, clock });
    const codec = await opened(keyring);
    const coded = other.encode(text, place);
    await codec.destroyKeys({ namespace: "", agentId: "main" }, "asked for");
    nowMs += 100;
    expect(() => other.decode(coded, place)).toThrow("was destroyed");
    // What is written later has a new key.
    expect(codec.decode(other.encode(text, place), place)).toEqual(text);
    other.close();
  });

  it("takes what it names, and nothing else", async () => {
    const codec = await newEncryption();
    const places = [
      { ...place, sessionId: "s" },
      { ...place, sessionId: "ss" },
      { ...place, agentId: "other" },
      { ...place, namespace: "n" },
      { ...place, sessionId: "", id: "upload/0", part: "file" as const },
    ];
    const coded = places.map((each) => codec.encode(text, each));
    const left = (): readonly number[] =>
      [...places.keys()].filter((index) => {
        try {
          return codec.decode(coded[index]!, places[index]!).byteLength > 0;
        } catch {
          return false;
        }
      });
    await codec.destroyKeys({ namespace: "", agentId: "main", sessionId: "s" }, "a");
    expect(left()).toEqual([1, 2, 3, 4]);
    await codec.destroyKeys({ namespace: "n" }, "b");
    expect(left()).toEqual([1, 2, 4]);
    await codec.destroyKeys({ namespace: "", agentId: "main" }, "c");
    expect(left()).toEqual([2]);
  });

  it("refuses what would take more than was named", async () => {
    const [bySession, byAgent, byNamespace] = [
      await newEncryption(),
      await newEncryption("agent"),
      await newEncryption("namespace"),
    ];
    for (const refusal of [
      bySession.destroyKeys({ namespace: "" }, "a"),
      bySession.destroyKeys({ namespace: "n", sessionId: "s" }, "a"),
      byAgent.destroyKeys({ namespace: "n", agentId: "main", sessionId: "s" }, "a"),
      byNamespace.destroyKeys({ namespace: "n", agentId: "main" }, "a"),
    ])
      await expect(refusal).rejects.toMatchObject({ code: "INPUT_INVALID" });
  });

  it("gives a proof that nobody else can make or change", async () => {
    const codec = await newEncryption();
    codec.encode(text, place);
    const proof = await codec.destroyKeys({ namespace: "", agentId: "main", sessionId: "s" }, "asked for");
    expect(codec.checkProof(JSON.parse(JSON.stringify(proof)))).toBe(true);
    const kept = Buffer.from(codec.encode(text, place).subarray(1, 17)).toString("hex");
    for (const changed of [{ keyIds: [] }, { keyIds: [kept] }, { reason: "other" }, { signature: "" }])
      expect(codec.checkProof({ ...proof, ...changed })).toBe(false);
    expect((await newEncryption()).checkProof(proof)).toBe(false);
    // It says nothing of whose session it was.
    expect(Object.keys(proof)).toEqual(["version", "keyringId", "keyIds", "destroyedAt", "reason", "signature"]);
  });
});
