import { createDecipheriv, createHmac, hkdfSync } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";

type Place = Record<"namespace" | "agentId" | "sessionId" | "id" | "part", string>;
type OpenedBy = { readonly main: Uint8Array } | { readonly recoveryKey: string };

function derive(key: Uint8Array, salt: Uint8Array, info: string): Buffer {
  return Buffer.from(hkdfSync("sha256", key, salt, info, 32));
}

function open(key: Uint8Array, sealed: Buffer, bound: Buffer): Buffer {
  const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, 12));
  decipher.setAAD(bound).setAuthTag(sealed.subarray(-16));
  return Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()]);
}

function unwrap(key: Uint8Array, wrapped: Buffer, name: readonly string[]): Buffer {
  const bound = JSON.stringify(["throughline keyring 1", wrapped.readUInt32BE(0), ...name]);
  return open(key, wrapped.subarray(4), Buffer.from(bound));
}

function dataKeyByTheDocument(keyring: string, by: OpenedBy, keyId: Uint8Array, place: readonly string[]): Buffer {
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  const database: DatabaseSync = new DatabaseSync(keyring, { readOnly: true });
  const blob = (sql: string, ...values: (string | Uint8Array)[]): Buffer =>
    Buffer.from(Object.values(database.prepare(sql).get(...values) ?? {})[0] as Uint8Array);
  const keyringId = blob("SELECT value FROM facts WHERE name = 'id'").toString("hex");
  const kind = "main" in by ? "main" : "recovery";
  const given = "main" in by ? by.main : fromCrockford(by.recoveryKey).subarray(0, 32);
  const slot = derive(given, blob("SELECT salt FROM slots WHERE kind = ?", kind), "throughline keyring slot 1");
  const wrappedMaster = blob("SELECT wrapped FROM slots WHERE kind = ?", kind);
  const master = unwrap(slot, wrappedMaster, [keyringId, "slot", kind]);
  const wrapped = blob("SELECT wrapped FROM data_keys JOIN secrets USING (number) WHERE id = ?", keyId);
  database.close();
  return unwrap(master, wrapped, [keyringId, "data key", Buffer.from(keyId).toString("hex"), ...place]);
}

/** Reads a payload as docs/formats/encryption.md describes it, without any source of the package. */
export function decodeByTheDocument(
  keyring: string,
  by: OpenedBy,
  coded: Uint8Array,
  { namespace, agentId, sessionId, id, part }: Place,
): Buffer {
  const bytes = Buffer.from(coded);
  const dataKey = dataKeyByTheDocument(keyring, by, bytes.subarray(1, 17), [namespace, agentId, sessionId]);
  const payloadKey = derive(dataKey, bytes.subarray(17, 33), "throughline payload 1");
  const placeText = JSON.stringify([namespace, agentId, sessionId, id, part]);
  return open(payloadKey, bytes.subarray(33), Buffer.concat([bytes.subarray(0, 33), Buffer.from(placeText)]));
}

/** Returns a token of the index of words as docs/formats/encryption.md describes it. */
export function tokenByTheDocument(keyring: string, main: Uint8Array, word: string, namespace: string): string {
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  const database: DatabaseSync = new DatabaseSync(keyring, { readOnly: true });
  const row = database
    .prepare("SELECT id FROM data_keys WHERE namespace = ? AND session_id = 'search index'")
    .get(namespace);
  database.close();
  const key = dataKeyByTheDocument(keyring, { main }, Buffer.from(row?.["id"] as Uint8Array), [
    namespace,
    "",
    "search index",
  ]);
  const bits = [...createHmac("sha256", key).update(word).digest()]
    .map((byte) => byte.toString(2).padStart(8, "0"))
    .join("");
  const letters = bits.match(/.{5}/g) ?? [];
  return letters
    .map((each) => "abcdefghijklmnopqrstuvwxyz234567"[Number.parseInt(each, 2)])
    .join("")
    .slice(0, 10);
}

function fromCrockford(text: string): Buffer {
  const letters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  const bits = [...text.replaceAll("-", "")].map((letter) => letters.indexOf(letter).toString(2).padStart(5, "0"));
  return Buffer.from((bits.join("").match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}
