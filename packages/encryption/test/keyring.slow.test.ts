import { readdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import type { CodecContext } from "@throughline/core/internal";
import { createKeyring } from "@throughline/encryption";
import { describe, expect, it } from "vitest";
import { keyringPath, mainKey, opened } from "./temporary-keyring.ts";

const place: CodecContext = { namespace: "", agentId: "main", sessionId: "s", id: "r1", part: "record" };
const text = Buffer.from("a planted word");
const bytesIn = (number: number): { readonly key: Buffer } => ({ key: Buffer.alloc(32, number) });

describe("a keyring", () => {
  it("opens with its passphrase, however it is composed, and with its recovery key, however it is typed", async () => {
    const keyring = keyringPath();
    const { recoveryKey } = await createKeyring({ keyring, mainKey: { passphrase: "gr\u00fcn" } });
    const coded = (await opened(keyring, { passphrase: "gru\u0308n" })).encode(text, place);
    const typed = recoveryKey.toLowerCase().replaceAll("-", " ").replaceAll("0", "o").replaceAll("1", "l");
    expect((await opened(keyring, { recoveryKey: typed })).decode(coded, place)).toEqual(text);
    await expect(opened(keyring, { passphrase: "grun" })).rejects.toMatchObject({ code: "MAIN_KEY_WRONG" });
    await expect(opened(keyring, mainKey)).rejects.toMatchObject({ code: "MAIN_KEY_WRONG" });
    const wrong = (recoveryKey.startsWith("A") ? "B" : "A") + recoveryKey.slice(1);
    await expect(opened(keyring, { recoveryKey: wrong })).rejects.toMatchObject({ code: "MAIN_KEY_WRONG" });
  });
});

describe("the rotation of the main key", () => {
  it("leaves payloads as they are, and shuts out the old main key and the old recovery key", async () => {
    const keyring = keyringPath();
    const { recoveryKey: old } = await createKeyring({ keyring, mainKey });
    const codec = await opened(keyring);
    const coded = Array.from({ length: 450 }, (_, each) => codec.encode(text, { ...place, sessionId: `s${each}` }));
    const proof = await codec.destroyKeys({ namespace: "", agentId: "main", sessionId: "s3" }, "asked for");
    const { recoveryKey } = await codec.rotateMainKey(bytesIn(8));
    await expect(opened(keyring)).rejects.toMatchObject({ code: "MAIN_KEY_WRONG" });
    await expect(opened(keyring, { recoveryKey: old })).rejects.toMatchObject({ code: "MAIN_KEY_WRONG" });
    for (const by of [bytesIn(8), { recoveryKey }]) {
      const again = await opened(keyring, by);
      for (const [each, one] of coded.entries())
        if (each !== 3) expect(again.decode(one, { ...place, sessionId: `s${each}` })).toEqual(text);
      expect(() => again.decode(coded[3]!, { ...place, sessionId: "s3" })).toThrow("was destroyed");
      expect(again.checkProof(proof)).toBe(true);
      expect(again.status().isRotating).toBe(false);
    }
  });
});

describe("the destruction of keys", () => {
  it("erases one of 1,000 sessions: it decodes nowhere, also not from a copy, and each other does", async () => {
    const keyring = keyringPath();
    await createKeyring({ keyring, mainKey });
    const codec = await opened(keyring);
    const at = (session: number): CodecContext => ({ ...place, sessionId: `session ${session}` });
    const coded = Array.from({ length: 1000 }, (_, session) => codec.encode(text, at(session)));
    const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
    const database = new DatabaseSync(keyring, { readOnly: true });
    const found = database.prepare("SELECT wrapped FROM secrets WHERE number = 501").get()?.["wrapped"];
    database.close();
    const wrapped = Buffer.from(found as Uint8Array);
    expect(readFileSync(keyring).includes(wrapped)).toBe(true);
    const proof = await codec.destroyKeys({ namespace: "", agentId: "main", sessionId: "session 500" }, "asked for");
    expect(proof.keyIds).toEqual([Buffer.from(coded[500]!.subarray(1, 17)).toString("hex")]);
    for (const handle of [codec, await opened(keyring)])
      for (let session = 0; session < 1000; session++)
        if (session === 500) expect(() => handle.decode(coded[500]!, at(500))).toThrow("was destroyed on 20");
        else expect(handle.decode(coded[session]!, at(session))).toEqual(text);
    // Neither the wrapped key nor the name of the session is left in the folder of the keyring.
    for (const name of readdirSync(dirname(keyring))) {
      const content = readFileSync(`${dirname(keyring)}/${name}`);
      expect(content.includes(wrapped)).toBe(false);
      expect(content.includes("session 500")).toBe(false);
    }
  });
});
