import { hasErrorCode, type PayloadCodec } from "@throughline/core";
import type { CodecContext } from "@throughline/core/internal";
import { assert, describe, expect, it } from "vitest";
import { createKeyring, openEncryption } from "@throughline/encryption";
import { decodeByTheDocument, tokenByTheDocument } from "./independent-decoder.ts";
import { unseal } from "../src/sealed-bytes.ts";
import { keyringPath, mainKey, newEncryption, opened } from "./temporary-keyring.ts";

const place: CodecContext = { namespace: "n", agentId: "main", sessionId: "s", id: "r1", part: "record" };
const text = Buffer.from("a planted word");

/** Returns the code of the error that decoding throws; null when it decodes. */
function refusal(codec: PayloadCodec, coded: Uint8Array, context: CodecContext): string | null {
  try {
    codec.decode(coded, context);
    return null;
  } catch (error) {
    if (hasErrorCode(error, "PAYLOAD_ALTERED", "KEY_MISSING", "KEY_DESTROYED")) return error.code;
    throw error;
  }
}

describe("a payload", () => {
  it("comes back, of any length, and never twice as the same bytes", async () => {
    const codec = await newEncryption();
    for (const length of [0, 1, 15, 16, 17, 100_000]) {
      const plain = Buffer.alloc(length, "x");
      const coded = codec.encode(plain, place);
      expect(Buffer.from(codec.decode(coded, place)).equals(plain)).toBe(true);
      expect(coded.byteLength).toBe(length + 61);
    }
    const nonces = new Set<string>();
    for (let count = 0; count < 500; count++)
      nonces.add(Buffer.from(codec.encode(text, place)).subarray(17, 45).toString("hex"));
    expect(nonces.size).toBe(500);
  });

  it("does not decode in any other place", async () => {
    const codec = await newEncryption("namespace");
    const coded = codec.encode(text, place);
    const others: CodecContext[] = [
      { ...place, agentId: "other" },
      { ...place, sessionId: "t" },
      { ...place, id: "r2" },
      { ...place, part: "source" },
      // The same letters, with other borders between them.
      { ...place, sessionId: "sr", id: "1" },
      { ...place, namespace: "", agentId: "nmain" },
      { ...place, namespace: 'n","main' },
    ];
    for (const other of others) expect(refusal(codec, coded, other), JSON.stringify(other)).toBe("PAYLOAD_ALTERED");
    expect(refusal(codec, coded, place)).toBe(null);
  });

  it("does not decode after any bit of it was changed", async () => {
    const codec = await newEncryption();
    const coded = codec.encode(text, place);
    for (let bit = 0; bit < coded.byteLength * 8; bit++) {
      const changed = Uint8Array.from(coded);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const isOfKey = bit >= 8 && bit < 17 * 8;
      expect(refusal(codec, changed, place), `bit ${bit}`).toBe(isOfKey ? "KEY_MISSING" : "PAYLOAD_ALTERED");
    }
  });

  it("does not decode when it was cut or lengthened by any count of bytes", async () => {
    const codec = await newEncryption();
    const coded = codec.encode(text, place);
    for (let length = 0; length < coded.byteLength; length++)
      expect(refusal(codec, coded.subarray(0, length), place), `${length} bytes`).toBe("PAYLOAD_ALTERED");
    expect(refusal(codec, Buffer.concat([coded, Buffer.alloc(1)]), place)).toBe("PAYLOAD_ALTERED");
  });

  it("does not decode with the id, the salt or the tag of another payload", async () => {
    const codec = await newEncryption();
    const [a, b] = [codec.encode(text, place), codec.encode(text, { ...place, sessionId: "t" })];
    for (const [from, to] of [
      [1, 17],
      [17, 33],
      [33, 45],
      [-16, undefined],
    ] as const) {
      const mixed = Uint8Array.from(a);
      mixed.set(b.subarray(from, to), from < 0 ? a.byteLength + from : from);
      expect(refusal(codec, mixed, place), `bytes from ${from}`).toBe("PAYLOAD_ALTERED");
    }
  });

  it("does not decode with another keyring", async () => {
    const [codec, other] = [await newEncryption(), await newEncryption()];
    expect(refusal(other, codec.encode(text, place), place)).toBe("KEY_MISSING");
    expect(codec.name).not.toBe(other.name);
  });

  it("of a destroyed key does not decode when it is put back", async () => {
    const codec = await newEncryption();
    const before = codec.encode(text, place);
    await codec.destroyKeys({ namespace: "n", agentId: "main", sessionId: "s" }, "asked for");
    const after = codec.encode(text, place);
    expect(refusal(codec, before, place)).toBe("KEY_DESTROYED");
    expect(refusal(codec, after, place)).toBe(null);
  });

  it("is decrypted as test case 16 of the GCM specification says", () => {
    const hex = (digits: string): Buffer => Buffer.from(digits, "hex");
    const key = hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
    const bound = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
    const sealed = hex(
      "cafebabefacedbaddecaf888" +
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662" +
        "76fc6ece0f4e1768cddf8853bb2d551b",
    );
    expect(unseal(sealed, { key, bound })?.toString("hex")).toBe(
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
    );
    expect(unseal(sealed, { key, bound: bound.subarray(1) })).toBe(null);
    for (const length of [0, 11, 27, sealed.byteLength - 1])
      expect(unseal(sealed.subarray(0, length), { key, bound }), `${length} bytes`).toBe(null);
  });

  it("decodes in a program of its own that follows the description of the format", async () => {
    const keyring = keyringPath();
    const { recoveryKey } = await createKeyring({ keyring, mainKey });
    const codec = await opened(keyring);
    const coded = codec.encode(text, place);
    assert("key" in mainKey);
    expect(decodeByTheDocument(keyring, { main: mainKey.key }, coded, place).toString()).toBe("a planted word");
    expect(decodeByTheDocument(keyring, { recoveryKey }, coded, place).toString()).toBe("a planted word");
  });
});

describe("a token of the index", () => {
  it("is what a program of its own computes, for each namespace another, and is none without an index", async () => {
    const keyring = keyringPath();
    await createKeyring({ keyring, mainKey });
    const codec = await opened(keyring);
    assert("key" in mainKey);
    const { key } = mainKey;
    const tokens = ["", "other"].flatMap((namespace) =>
      ["quokka", "gr\u00fcn", "role user"].map((word) => {
        const token = codec.searchToken?.(word, namespace);
        expect(token).toMatch(/^[a-z2-7]{10}$/);
        expect(token).toBe(tokenByTheDocument(keyring, key, word, namespace));
        return token;
      }),
    );
    expect(new Set(tokens).size).toBe(6);
    expect(codec.status().keys).toBe(0);
    expect(new Set(["quokka", "emu"].map((word) => codec.searchToken?.(word, "misspelled", "search")))).toEqual(
      new Set(["0"]),
    );
    const before = codec.searchToken?.("quokka", "other");
    expect(codec.searchToken?.("quokka", "other", "search")).toBe(before);
    const { recoveryKey } = await codec.rotateMainKey({ key: Buffer.alloc(32, 8) });
    expect((await opened(keyring, { recoveryKey })).searchToken?.("quokka", "other")).toBe(before);
    expect((await codec.destroyKeys({ namespace: "misspelled" }, "asked for")).keyIds.length).toBe(0);
    expect((await codec.destroyKeys({ namespace: "other" }, "asked for")).keyIds.length).toBe(1);
    expect(codec.status()).toMatchObject({ keys: 0, destroyedKeys: 0 });
    expect(codec.searchToken?.("quokka", "other")).not.toBe(before);
    expect(codec.searchToken?.("quokka", "")).toBe(tokens[0]);
    const silent = await openEncryption({ keyring, mainKey: { recoveryKey }, search: "off" });
    expect(silent.searchToken).toBe(undefined);
    silent.close();
  });
});
