import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createKeyring, type Encryption, openEncryption } from "@throughline/encryption";
import { afterAll, describe, it } from "vitest";
import { isLongRun } from "../../tools/test-size.ts";

/** What declares the tests of the kit. */
interface KitRunner {
  describe(name: string, body: () => void): void;
  it(name: string, body: (context: { skip(reason: string): void }) => Promise<void>): void;
}

/** Opens a new keyring for the tests of a file. */
export async function encryptionForTests(): Promise<Encryption> {
  const folder = mkdtempSync(join(tmpdir(), "throughline-keyring-"));
  const options = { keyring: join(folder, "keys.db"), mainKey: { key: Buffer.alloc(32, 7) } };
  await createKeyring(options);
  const encryption = await openEncryption(options);
  afterAll(() => {
    encryption.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return encryption;
}

/** What encryption can change beside other codecs: what is coded, moves to another name, or is removed with its key. Pages are lists of ids. */
const dependsOnEncryption =
  /^(?:codec|copies|files(?!\/pages)|fork|heads|lifecycle|move|partials|redact|remove|search|sources|text-copies|vectors|window)\//;

/**
 * A runner of a store's conformance kit that leaves out what runs without a codec: other files run it. The whole tier
 * runs the cases that depend on encryption, the long tier runs all.
 */
export function encryptedRunner(): KitRunner {
  let isCoded = false;
  return {
    describe: (name, body) => {
      isCoded = name.endsWith(" under a codec");
      if (isCoded) describe(name.replace(/under a codec$/, "with encryption"), body);
    },
    it: (name, body) => (isLongRun || dependsOnEncryption.test(name) ? it(name, body) : undefined),
  };
}
