import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createKeyring,
  type Encryption,
  type KeyringStatus,
  type MainKey,
  openEncryption,
} from "@throughline/encryption";
import { onTestFinished } from "vitest";

/** A main key for tests, which is quicker than a passphrase. */
export const mainKey: MainKey = { key: Buffer.alloc(32, 7) };

/** Returns a path in a new folder that is removed after the test. */
export function keyringPath(): string {
  const folder = mkdtempSync(join(tmpdir(), "throughline-keyring-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "keys.db");
}

/** Opens a keyring that is closed after the test. */
export async function opened(keyring: string, by: MainKey = mainKey): Promise<Encryption> {
  const encryption = await openEncryption({ keyring, mainKey: by });
  onTestFinished(() => encryption.close());
  return encryption;
}

/** Creates a keyring in a new folder, and opens it. */
export async function newEncryption(scope: KeyringStatus["scope"] = "session"): Promise<Encryption> {
  const keyring = keyringPath();
  await createKeyring({ keyring, mainKey, scope });
  return opened(keyring);
}
