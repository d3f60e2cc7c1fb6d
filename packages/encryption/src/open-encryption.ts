import {
  assertKnownOptions,
  optionKinds,
  type OptionTable,
  portKinds,
  refused,
  systemClock,
} from "@throughline/core/internal";
import type { Clock } from "@throughline/core";
import { type Encryption, KeyringEncryption, type KeyScope, type SearchSetting } from "./encryption.ts";
import { keyringError } from "./keyring-error.ts";
import { createKeyringFile, openKeyringFile } from "./keyring-file.ts";
import { makeSlots, readFact, unlockMasters, writeSlots } from "./keyring-slots.ts";
import { fillKeyring, Keyring } from "./keyring.ts";
import type { MainKey } from "./main-key.ts";
import { mainKeyKind } from "./main-key-kind.ts";
import { keyBytes } from "./sealed-bytes.ts";
import { secretBytes } from "./secret-bytes.ts";

/** Names the keyring to create, and the keys that open it. */
export interface CreateKeyringOptions {
  /** States the path of the file, which is created with mode 0600. Its folder must exist. Keep it apart from backups of the store. */
  readonly keyring: string;
  /** Opens the keyring: a passphrase or 32 random bytes. */
  readonly mainKey: MainKey;
  /** States which payloads share a data key. It cannot be changed. @default "session" */
  readonly scope?: KeyScope | undefined;
}

/** Names the keyring to open, and a key that opens it. */
export interface OpenEncryptionOptions {
  /** States the path of the keyring. */
  readonly keyring: string;
  /** Opens the keyring. */
  readonly mainKey: MainKey;
  /**
   * States what stores index. With `words` an index holds keyed tokens of words, which show how often each token occurs
   * and where, and no word. With `off` there is no index, and a search of commands reads every record. @default "words"
   */
  readonly search?: SearchSetting | undefined;
  /** Gives the times of keys and proofs. @default the system's clock */
  readonly clock?: Clock | undefined;
}

const scopes: readonly KeyScope[] = ["session", "agent", "namespace"];
const keyringIdBytes = 16;

const { filledText, oneOf, required } = optionKinds;
const createTable: OptionTable<CreateKeyringOptions> = {
  keyring: required(filledText),
  mainKey: mainKeyKind,
  scope: oneOf(scopes),
};
const openTable: OptionTable<OpenEncryptionOptions> = {
  keyring: required(filledText),
  mainKey: mainKeyKind,
  search: oneOf(["words", "off"]),
  clock: portKinds.clock,
};

/**
 * Creates a keyring in a new file. The recovery key opens it, too, and cannot be shown again: print it, and keep it apart.
 *
 * @throws {ThroughlineError} INPUT_INVALID, KEYRING_EXISTS, KEYRING_IO, MAIN_KEY_WRONG for a key that has not 32 bytes
 *
 * @example
 * const { recoveryKey } = await createKeyring({ keyring: "keys.db", mainKey: { passphrase } });
 */
export async function createKeyring(options: CreateKeyringOptions): Promise<{ readonly recoveryKey: string }> {
  assertKnownOptions<CreateKeyringOptions>("createKeyring", options, createTable);
  const { keyring: path, mainKey, scope = "session" } = options;
  const keyringId = secretBytes(keyringIdBytes).toString("hex");
  const master = secretBytes(keyBytes);
  const slots = await makeSlots(mainKey, { keyringId, generation: 1, master });
  createKeyringFile(path, (database) => {
    writeSlots(database, slots);
    fillKeyring(database, { keyringId, master, scope });
  });
  return { recoveryKey: slots.recoveryKey };
}

/**
 * Opens a keyring, and returns the codec of stores. Any number of processes of one host may have it open.
 *
 * Words are indexed as keyed tokens, and vectors for search by meaning are encrypted. Addresses, times, sizes and ids stay plain.
 *
 * @throws {ThroughlineError} INPUT_INVALID, KEYRING_NOT_FOUND, KEYRING_DAMAGED, KEYRING_IO, MAIN_KEY_WRONG
 *
 * @example
 * const codec = await openEncryption({ keyring: "keys.db", mainKey: { passphrase } });
 * const store = createSqliteStore({ path: "sessions.db", codec });
 */
export async function openEncryption(options: OpenEncryptionOptions): Promise<Encryption> {
  assertKnownOptions<OpenEncryptionOptions>("openEncryption", options, openTable);
  const { keyring: path, mainKey, search = "words", clock = systemClock } = options;
  const file = openKeyringFile(path);
  try {
    const masters = await unlockMasters(file.database, mainKey);
    const scope = scopes.find((one) => one === readFact(file.database, "scope")?.toString());
    if (scope === undefined) throw refused("KEYRING_DAMAGED", "The keyring has lost the scope of its keys.", { path });
    return new KeyringEncryption(new Keyring(file, masters, clock), { scope, clock, search });
  } catch (error) {
    file.database.close();
    throw keyringError(error, path);
  }
}
