import { createDecipheriv, hkdfSync } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";

/** Reads a payload as docs/formats/encryption.md describes it, without any source of the package. */
export function decodeByTheDocument(
  keyring: string,
  by: { readonly main: Uint8Array } | { readonly recoveryKey: string },
  coded: Uint8Array,
  { namespace, agentId, sessionId, id, part }: Record<"namespace" | "agentId" | "sessionId" | "id" | "part", string>,
): Buffer {
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  const database: DatabaseSync = new DatabaseSync(keyring, { readOnly: true });
  const blob = (sql: string, ...values: (string | Uint8Array)[]): Buffer =>
    Buffer.from(Object.values(database.prepare(sql).get(...values) ?? {})[0] as Uint8Array);
  const derive = (key: Uint8Array, salt: Uint8Array, info: string): Buffer =>
    Buffer.from(hkdfSync("sha256", key, salt, info, 32));
  const open = (key: Uint8Array, sealed: Buffer, bound: Buffer): Buffer => {
    const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, 12));
    decipher.setAAD(bound).setAuthTag(sealed.subarray(-16));
    return Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()]);
  };
  const unwrap = (key: Uint8Array, wrapped: Buffer, name: readonly string[]): Buffer =>
    open(
      key,
      wrapped.subarray(4),
      Buffer.from(JSON.stringify(["throughline keyring 1", wrapped.readUInt32BE(0), ...name])),
    );

  const bytes = Buffer.from(coded);
  const keyringId = blob("SELECT value FROM facts WHERE name = 'id'").toString("hex");
  const kind = "main" in by ? "main" : "recovery";
  const given = "main" in by ? by.main : fromCrockford(by.recoveryKey).subarray(0, 32);
  const slot = derive(given, blob("SELECT salt FROM slots WHERE kind = ?", kind), "throughline keyring slot 1");
  const wrappedMaster = blob("SELECT wrapped FROM slots WHERE kind = ?", kind);
  const master = unwrap(slot, wrappedMaster, [keyringId, "slot", kind]);
  const keyId = bytes.subarray(1, 17);
  const wrapped = blob("SELECT wrapped FROM data_keys JOIN secrets USING (number) WHERE id = ?", keyId);
  const name = [keyringId, "data key", keyId.toString("hex"), namespace, agentId, sessionId];
  const payloadKey = derive(unwrap(master, wrapped, name), bytes.subarray(17, 33), "throughline payload 1");
  database.close();
  const placeText = JSON.stringify([namespace, agentId, sessionId, id, part]);
  return open(payloadKey, bytes.subarray(33), Buffer.concat([bytes.subarray(0, 33), Buffer.from(placeText)]));
}

function fromCrockford(text: string): Buffer {
  const letters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  const bits = [...text.replaceAll("-", "")].map((letter) => letters.indexOf(letter).toString(2).padStart(5, "0"));
  return Buffer.from((bits.join("").match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}
