import { refused } from "@throughline/core/internal";
import type { PayloadCodec } from "@throughline/core";
import { codecName } from "./encryption.ts";
import { openKeyringFile } from "./keyring-file.ts";
import { readFact } from "./keyring-slots.ts";

const entry = Buffer.from(JSON.stringify({ label: "encrypted" }));

/**
 * Opens a store without the main key, to list what is plain in it. Each entry has the label `encrypted` and nothing else.
 * @throws {ThroughlineError} KEYRING_NOT_FOUND, KEYRING_DAMAGED, KEYRING_IO
 */
export function lockedCodec(path: string): PayloadCodec {
  const { database } = openKeyringFile(path);
  try {
    const id = readFact(database, "id");
    if (id === null) throw refused("KEYRING_DAMAGED", "The keyring has lost its id.", { path });
    const locked = (): Error => refused("MAIN_KEY_WRONG", "The store is open without its main key.", { path });
    return {
      name: codecName(id.toString("hex")),
      encode: () => {
        throw locked();
      },
      decode: (_coded, { part }) => {
        if (part === "entry") return entry;
        throw locked();
      },
    };
  } finally {
    database.close();
  }
}
