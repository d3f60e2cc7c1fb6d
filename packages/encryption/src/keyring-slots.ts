import type { DatabaseSync } from "node:sqlite";
import { refused } from "@throughline/core/internal";
import { type MainKey, methodOf, newSlotSalt, noCost, scryptCost, type SlotMethod, slotKey } from "./main-key.ts";
import { recoveryKeyText } from "./recovery-key.ts";
import { keyBytes } from "./sealed-bytes.ts";
import { secretBytes } from "./secret-bytes.ts";
import { generationOf, unwrapSecret, wrapSecret } from "./wrapped-secrets.ts";

/** Holds the master keys of a keyring by generation. After a rotation that was interrupted there are two. */
export interface Masters {
  readonly keyringId: string;
  readonly generation: number;
  readonly keys: ReadonlyMap<number, Uint8Array>;
}

/** Holds what a slot of a keyring holds, as its row. */
interface SlotRow {
  readonly kind: string;
  readonly method: string;
  readonly salt: Uint8Array;
  readonly n: number;
  readonly r: number;
  readonly p: number;
  readonly wrapped: Uint8Array;
}

/** Holds new slots, ready to be written in one transaction. */
export interface NewSlots {
  readonly rows: readonly SlotRow[];
  readonly recoveryKey: string;
}

/** Holds a master key, and what a slot with it is bound to. */
export interface SlotParts {
  readonly keyringId: string;
  readonly generation: number;
  readonly master: Uint8Array;
}

/** Wraps a master key under a new recovery key, and under the main key unless that stays. */
export async function makeSlots(main: MainKey | null, { keyringId, generation, master }: SlotParts): Promise<NewSlots> {
  if (main !== null && "recoveryKey" in main)
    throw refused("INPUT_INVALID", "A recovery key opens a keyring; it cannot be its main key.");
  const recoveryKey = recoveryKeyText(secretBytes(keyBytes));
  const slots = [...(main === null ? [] : ([["main", main]] as const)), ["recovery", { recoveryKey }]] as const;
  const rows: SlotRow[] = [];
  for (const [kind, by] of slots) {
    const method = methodOf(by);
    const fresh = await newSlotSalt(by);
    const cost = method === "scrypt" ? scryptCost : noCost;
    const key = await slotKey(by, fresh, cost);
    rows.push({
      kind,
      method,
      salt: fresh.salt,
      ...cost,
      wrapped: wrapSecret(master, key, generation, [keyringId, "slot", kind]),
    });
  }
  return { rows, recoveryKey };
}

export function writeSlots(database: DatabaseSync, { rows }: NewSlots): void {
  const statement = database.prepare("INSERT OR REPLACE INTO slots VALUES (?, ?, ?, ?, ?, ?, ?)");
  for (const { kind, method, salt, n, r, p, wrapped } of rows) statement.run(kind, method, salt, n, r, p, wrapped);
}

export function writeFact(database: DatabaseSync, name: string, value: Uint8Array | null): void {
  if (value === null) database.prepare("DELETE FROM facts WHERE name = ?").run(name);
  else database.prepare("INSERT OR REPLACE INTO facts VALUES (?, ?)").run(name, value);
}

export function readFact(database: DatabaseSync, name: string): Buffer | null {
  const row = database.prepare("SELECT value FROM facts WHERE name = ?").get(name);
  return row === undefined ? null : Buffer.from(row["value"] as Uint8Array);
}

/** @throws {ThroughlineError} MAIN_KEY_WRONG, KEYRING_DAMAGED */
export async function unlockMasters(database: DatabaseSync, main: MainKey): Promise<Masters> {
  const kind = "recoveryKey" in main ? "recovery" : "main";
  // Read in one transaction, because a rotation may replace all of it at once.
  database.exec("BEGIN");
  const slot = database.prepare("SELECT * FROM slots WHERE kind = ?").get(kind) as SlotRow | undefined;
  const id = readFact(database, "id");
  const previous = readFact(database, "previous");
  database.exec("COMMIT");
  if (slot === undefined || id === null)
    throw refused("KEYRING_DAMAGED", "The keyring has lost its id or its main key.");
  const keyringId = id.toString("hex");
  assertMethod(slot.method as SlotMethod, methodOf(main));
  const master = unwrapSecret(slot.wrapped, await slotKey(main, { salt: slot.salt, wrapped: null }, slot), [
    keyringId,
    "slot",
    kind,
  ]);
  if (master === null) throw refused("MAIN_KEY_WRONG", `The ${kind} key does not open the keyring.`, { keyringId });
  const generation = generationOf(slot.wrapped);
  const keys = new Map<number, Uint8Array>([[generation, master]]);
  if (previous !== null) {
    const before = unwrapSecret(previous, master, [keyringId, "previous"]);
    if (before === null) throw refused("KEYRING_DAMAGED", "The previous master key of the keyring is damaged.");
    keys.set(generation - 1, before);
  }
  return { keyringId, generation, keys };
}

function assertMethod(kept: SlotMethod, given: SlotMethod): void {
  if (kept === given) return;
  const expected = { scrypt: "a passphrase", hkdf: "a key of 32 bytes", service: "a key service" }[kept];
  throw refused("MAIN_KEY_WRONG", `The keyring opens with ${expected}.`, { kept, given });
}
