import { hkdfSync, scrypt } from "node:crypto";
import { refused } from "@throughline/core/internal";
import { parseRecoveryKey } from "./recovery-key.ts";
import { keyBytes } from "./sealed-bytes.ts";

/**
 * Opens a keyring: a passphrase, 32 random bytes, or the recovery key that `createKeyring` returned. A program gets the
 * bytes from a file, a variable or a key service.
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
      /** Holds the recovery key, with or without its hyphens. */
      readonly recoveryKey: string;
    };

/** States how a slot of a keyring derives its key. */
export type SlotMethod = "scrypt" | "hkdf";

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
  return "passphrase" in main ? "scrypt" : "hkdf";
}

/**
 * Returns the key of a slot.
 * @throws {ThroughlineError} KEYRING_DAMAGED when the cost is out of bounds, MAIN_KEY_WRONG for a key of another length
 */
export async function slotKey(main: MainKey, salt: Uint8Array, cost: SlotCost): Promise<Buffer> {
  if (!("passphrase" in main)) {
    const key = "key" in main ? main.key : parseRecoveryKey(main.recoveryKey);
    if (key.byteLength !== keyBytes)
      throw refused("MAIN_KEY_WRONG", `A main key has ${keyBytes} bytes; received ${key.byteLength}.`, {
        bytes: key.byteLength,
      });
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
