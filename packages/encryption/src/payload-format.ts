import { hkdfSync } from "node:crypto";
import { refused, type CodecContext } from "@throughline/core/internal";
import { keyBytes, nonceBytes, tagBytes } from "./sealed-bytes.ts";

/**
 * The bytes of a payload: version (1), id of the data key (16), salt (16), nonce (12), ciphertext, tag (16). Numbers
 * count bytes. docs/formats/encryption.md describes them for other programs.
 */
export const payloadVersion = 1;
export const keyIdBytes = 16;
export const saltBytes = 16;
export const headerBytes: number = 1 + keyIdBytes + saltBytes;

/** SP 800-38D, 8.3 allows 2^32 random nonces under one key. A new salt makes a new key long before. */
export const payloadsOfSalt: number = 2 ** 24;

const purpose = "throughline payload 1";

/** Returns the key that encrypts payloads with this salt. */
export function payloadKey(dataKey: Uint8Array, salt: Uint8Array): Buffer {
  return Buffer.from(hkdfSync("sha256", dataKey, salt, purpose, keyBytes));
}

/** Returns the bytes that a payload is bound to: its header, and its place as JSON. */
export function boundBytes(header: Uint8Array, context: CodecContext): Buffer {
  const { namespace, agentId, sessionId, id, part } = context;
  return Buffer.concat([header, Buffer.from(JSON.stringify([namespace, agentId, sessionId, id, part]))]);
}

/** Holds the parts of a payload, which share its bytes. */
export interface PayloadParts {
  readonly header: Uint8Array;
  readonly keyId: Uint8Array;
  readonly salt: Uint8Array;
  readonly sealed: Uint8Array;
}

/** @throws {ThroughlineError} PAYLOAD_ALTERED for bytes that are no payload of this version */
export function payloadParts(coded: Uint8Array): PayloadParts {
  if (coded.byteLength < headerBytes + nonceBytes + tagBytes || coded[0] !== payloadVersion)
    throw refused("PAYLOAD_ALTERED", "The bytes are not an encrypted payload, or a part of one.", {
      bytes: coded.byteLength,
      version: coded[0] ?? null,
    });
  return {
    header: coded.subarray(0, headerBytes),
    keyId: coded.subarray(1, 1 + keyIdBytes),
    salt: coded.subarray(1 + keyIdBytes, headerBytes),
    sealed: coded.subarray(headerBytes),
  };
}

/** Returns the start of a payload. */
export function payloadHeader(keyId: Uint8Array, salt: Uint8Array): Buffer {
  return Buffer.concat([Uint8Array.of(payloadVersion), keyId, salt]);
}
