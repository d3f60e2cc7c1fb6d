import { hkdfSync, scrypt, timingSafeEqual } from "node:crypto";
import { refused } from "@throughline/core/internal";
import { parseRecoveryKey } from "./recovery-key.ts";
import { keyBytes } from "./sealed-bytes.ts";
import { secretBytes } from "./secret-bytes.ts";

/**
 * Opens a keyring: a passphrase, 32 random bytes, a key service, or the recovery key that `createKeyring` returned. A
 * program gets the bytes from a file or a variable.
 */
export type MainKey =
  | {
      /** Holds a passphrase. Opening a keyring with it takes about half a second and 128 MiB. */
      readonly passphrase: string;
    }
  | {
      /** Holds 32 random bytes. */
      readonly key: Uint8Array;
    }
  | {
      /**
       * Reaches a key service, which keeps the main key to itself. Making a keyring, and a rotation to the service, ask
       * `wrap` once and then `unwrap` once, to see that it returns the key. Opening a keyring asks `unwrap` once.
       */
      readonly service: {
        /** Returns 32 bytes encrypted under the key of the service. The keyring keeps the result: at most 64 KiB. */
        wrap(key: Uint8Array): Promise<Uint8Array>;
        /** Returns the 32 bytes that `wrap` was given. Rejects what it did not wrap. */
        unwrap(wrapped: Uint8Array): Promise<Uint8Array>;
      };
    }
  | {
      /** Holds the recovery key, with or without its hyphens. */
      readonly recoveryKey: string;
    };

/** States how a slot of a keyring derives its key. */
export type SlotMethod = "scrypt" | "hkdf" | "service";

export interface SlotCost {
  /** States N of scrypt; 0 for HKDF. */
  readonly n: number;
  readonly r: number;
  readonly p: number;
}

export const scryptCost: SlotCost = { n: 2 ** 17, r: 8, p: 1 };
export const noCost: SlotCost = { n: 0, r: 0, p: 0 };

/** A keyring that was changed by others must not take all memory. */
const mostCost: SlotCost = { n: 2 ** 20, r: 8, p: 4 };

const purpose = "throughline keyring slot 1";

export function methodOf(main: MainKey): SlotMethod {
  if ("service" in main) return "service";
  return "passphrase" in main ? "scrypt" : "hkdf";
}

const slotSaltBytes = 16;
const mostWrappedBytes = 65_536;

/** Holds the salt of a new slot, and what its key service has to unwrap from it: null for another main key. */
export interface NewSalt {
  readonly salt: Uint8Array;
  readonly wrapped: Uint8Array | null;
}

/**
 * Returns the salt of a new slot. For a key service it is a random key, as the service has wrapped it.
 * @throws {ThroughlineError} KEYRING_IO when the service fails
 */
export async function newSlotSalt(main: MainKey): Promise<NewSalt> {
  if (!("service" in main)) return { salt: secretBytes(slotSaltBytes), wrapped: null };
  const key = secretBytes(keyBytes);
  // A service may overwrite what it gets.
  const salt = await asked(() => main.service.wrap(Uint8Array.from(key)));
  if (salt.byteLength >= keyBytes && salt.byteLength <= mostWrappedBytes)
    return { salt: Uint8Array.from(salt), wrapped: key };
  throw refused("KEYRING_IO", `The key service returned ${salt.byteLength} bytes for a wrapped key.`);
}

async function asked(ask: () => Promise<Uint8Array>): Promise<Uint8Array> {
  let given: unknown;
  try {
    given = await ask();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : "it rejected";
    throw refused("KEYRING_IO", `The key service failed: ${why}.`, {}, cause);
  }
  if (given instanceof Uint8Array) return given;
  throw refused("KEYRING_IO", "The key service returned something else than bytes.");
}

async function keyOf(main: Exclude<MainKey, { readonly passphrase: string }>, salt: Uint8Array): Promise<Uint8Array> {
  if ("service" in main) return asked(() => main.service.unwrap(salt));
  return "key" in main ? main.key : parseRecoveryKey(main.recoveryKey);
}

/**
 * Returns the key of a slot.
 * @param wrapped what a key service has to return; null when a slot is opened
 * @throws {ThroughlineError} KEYRING_DAMAGED when the cost is out of bounds, MAIN_KEY_WRONG for a key of another length, KEYRING_IO
 *   when a key service fails
 */
export async function slotKey(main: MainKey, { salt, wrapped }: NewSalt, cost: SlotCost): Promise<Buffer> {
  if (!("passphrase" in main)) {
    const key = await keyOf(main, salt);
    if (key.byteLength !== keyBytes)
      throw refused("MAIN_KEY_WRONG", `A main key has ${keyBytes} bytes; received ${key.byteLength}.`, {
        bytes: key.byteLength,
      });
    // With another key nothing would open the keyring later.
    if (wrapped !== null && !timingSafeEqual(key, wrapped))
      throw refused("KEYRING_IO", "The key service unwrapped another key than it was given to wrap.");
    return Buffer.from(hkdfSync("sha256", key, salt, purpose, keyBytes));
  }
  const { n, r, p } = cost;
  if (n < 2 || (n & (n - 1)) !== 0 || n > mostCost.n || r < 1 || r > mostCost.r || p < 1 || p > mostCost.p)
    throw refused("KEYRING_DAMAGED", "The keyring states a cost of its passphrase that is out of bounds.", { n, r, p });
  const secret = main.passphrase.normalize("NFC");
  return new Promise((resolve, reject) => {
    scrypt(secret, salt, keyBytes, { N: n, r, p, maxmem: 129 * n * r * p + 2 ** 20 }, (error, key) =>
      error === null ? resolve(key) : reject(error),
    );
  });
}
