import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { refused } from "@throughline/core/internal";
import type { Clock } from "@throughline/core";
import { withKeyringErrors } from "./keyring-error.ts";
import { isOfIndex, type KeyPlace, nameOf, placeOf } from "./key-place.ts";
import type { KeyringFile } from "./keyring-file.ts";
import { type Masters, type NewSlots, readFact, type SlotParts, writeFact, writeSlots } from "./keyring-slots.ts";
import { keyIdBytes } from "./payload-format.ts";
import { keyBytes } from "./sealed-bytes.ts";
import { secretBytes } from "./secret-bytes.ts";
import { generationOf, unwrapSecret, wrappedBytes, wrapSecret } from "./wrapped-secrets.ts";

export interface DataKey {
  readonly id: Buffer;
  readonly secret: Buffer;
}

/** Counts the data keys of a keyring. */
export interface KeyCounts {
  readonly keys: number;
  readonly destroyed: number;
}

/** Lists a session whose erasure has begun. */
export interface Erasure extends KeyPlace {
  readonly reason: string;
}

/** One transaction changes at most this many keys, in a few milliseconds. */
const sliceKeys = 200;

const proofKeyNumber = 0;

type Row = Readonly<Record<string, unknown>>;

/** Holds the data keys of an open keyring. Each method reads or writes the file, which other processes may change. */
export class Keyring {
  readonly #file: KeyringFile;
  readonly #clock: Clock;
  readonly #statements = new Map<string, StatementSync>();
  #masters: Masters;
  #version: number;

  constructor(file: KeyringFile, masters: Masters, clock: Clock) {
    this.#file = file;
    this.#masters = masters;
    this.#clock = clock;
    this.#version = this.#dataVersion();
  }

  get id(): string {
    return this.#masters.keyringId;
  }

  get path(): string {
    return this.#file.path;
  }

  /** Returns whether another process has changed the keyring since the last call. */
  hasChanged(): boolean {
    const version = withKeyringErrors(this.path, () => this.#dataVersion());
    const changed = version !== this.#version;
    this.#version = version;
    return changed;
  }

  /**
   * Returns the key of a place. The first call for a place makes it, and returns when it is on the disk.
   * @throws {ThroughlineError} KEYRING_IO, KEYRING_DAMAGED, MAIN_KEY_WRONG after a rotation by another process
   */
  keyOf(place: KeyPlace): DataKey {
    const { namespace, agentId, sessionId } = place;
    return withKeyringErrors(
      this.path,
      () => this.#found(place) ?? this.#within(() => this.#found(place) ?? this.#made(namespace, agentId, sessionId)),
    );
  }

  /**
   * Returns the key of a place, or null when it has none.
   * @throws {ThroughlineError} KEYRING_IO, KEYRING_DAMAGED, MAIN_KEY_WRONG after a rotation by another process
   */
  foundKey(place: KeyPlace): DataKey | null {
    return withKeyringErrors(this.path, () => this.#found(place));
  }

  /** @throws {ThroughlineError} KEY_MISSING, KEY_DESTROYED, KEYRING_DAMAGED, KEYRING_IO, MAIN_KEY_WRONG */
  secretOf(id: Uint8Array): Buffer {
    const row = withKeyringErrors(this.path, () =>
      this.#one("SELECT * FROM data_keys JOIN secrets USING (number) WHERE id = ?", id),
    );
    const keyId = Buffer.from(id).toString("hex");
    if (row === undefined)
      throw refused("KEY_MISSING", "The keyring does not have the key of the payload.", { keyId, keyringId: this.id });
    if (row["destroyed_at_ms"] === null) return this.#unwrapped(row);
    const destroyedAt = new Date(Number(row["destroyed_at_ms"])).toISOString();
    throw refused("KEY_DESTROYED", `The key of the payload was destroyed on ${destroyedAt}.`, {
      keyId,
      destroyedAt,
      destroyedFor: row["reason"],
    });
  }

  /** Destroys a slice of the keys of a place. Returns their ids; none when no key is left. */
  destroySlice({ namespace, agentId, sessionId }: Partial<KeyPlace>, atMs: number, reason: string): readonly string[] {
    const where = [
      ["namespace", namespace],
      ["agent_id", agentId],
      ["session_id", sessionId],
    ].filter(([, value]) => value !== undefined);
    const conditions = where.map(([column]) => `${column} = ?`).join(" AND ");
    const values = where.map(([, value]) => value ?? "");
    return withKeyringErrors(this.path, () =>
      this.#within(() => {
        const rows = this.#statement(
          `SELECT number, id FROM data_keys WHERE destroyed_at_ms IS NULL AND ${conditions} LIMIT ${sliceKeys}`,
        ).all(...values);
        for (const { number, id } of rows as { number: number; id: Uint8Array }[]) {
          // The row keeps its length, so its bytes are overwritten where they are.
          this.#run(`UPDATE secrets SET wrapped = zeroblob(${wrappedBytes}) WHERE number = ?`, number);
          this.#run(
            `UPDATE data_keys SET namespace = NULL, agent_id = NULL, destroyed_at_ms = ?, reason = ?,
               session_id = CASE WHEN ${isOfIndex} THEN session_id END WHERE id = ?`,
            atMs,
            reason,
            id,
          );
        }
        return rows.map(({ id }) => Buffer.from(id as Uint8Array).toString("hex"));
      }),
    );
  }

  /** Returns the ids of the keys of a place, in hex. */
  idsOf({ namespace, agentId, sessionId }: KeyPlace): readonly string[] {
    const sql =
      "SELECT id FROM data_keys WHERE namespace = ? AND agent_id = ? AND session_id = ? AND destroyed_at_ms IS NULL";
    const rows = withKeyringErrors(this.path, () => this.#statement(sql).all(namespace, agentId, sessionId));
    return rows.map(({ id }) => Buffer.from(id as Uint8Array).toString("hex"));
  }

  /** Returns the key that signs proofs. It outlives a rotation. */
  proofKey(): Buffer {
    const row = this.#one("SELECT * FROM secrets WHERE number = ?", proofKeyNumber);
    return this.#unwrappedAs(row?.["wrapped"] as Uint8Array, [this.id, "proof key"]);
  }

  /** States whether all of these keys are destroyed. */
  areDestroyed(ids: readonly string[]): boolean {
    return ids.every((id) => {
      const row = this.#one(
        "SELECT destroyed_at_ms, wrapped FROM data_keys JOIN secrets USING (number) WHERE id = ?",
        Buffer.from(id, "hex"),
      );
      return row !== undefined && row["destroyed_at_ms"] !== null && generationOf(row["wrapped"] as Uint8Array) === 0;
    });
  }

  counts(): KeyCounts {
    const row = withKeyringErrors(this.path, () =>
      this.#one(
        `SELECT count(*) FILTER (WHERE destroyed_at_ms IS NULL) AS keys, count(destroyed_at_ms) AS destroyed
           FROM data_keys WHERE NOT ${isOfIndex}`,
      ),
    );
    return { keys: Number(row?.["keys"]), destroyed: Number(row?.["destroyed"]) };
  }

  /** Notes that the erasure of sessions has begun. */
  noteErasures(erasures: readonly Erasure[]): void {
    withKeyringErrors(this.path, () =>
      this.#within(() => {
        for (const { namespace, agentId, sessionId, reason } of erasures)
          this.#run("INSERT OR REPLACE INTO erasures VALUES (?, ?, ?, ?)", sessionId, namespace, agentId, reason);
      }),
    );
  }

  erasures(): readonly Erasure[] {
    const rows = withKeyringErrors(this.path, () => this.#statement("SELECT * FROM erasures").all());
    return rows.map((row) => ({
      namespace: String(row["namespace"]),
      agentId: String(row["agent_id"]),
      sessionId: String(row["session_id"]),
      reason: String(row["reason"]),
    }));
  }

  dropErasure({ namespace, agentId, sessionId }: KeyPlace): void {
    const sql = "DELETE FROM erasures WHERE namespace = ? AND agent_id = ? AND session_id = ?";
    withKeyringErrors(this.path, () => this.#run(sql, namespace, agentId, sessionId));
  }

  /** Replaces the main key, the recovery key and the master key at once. Data keys follow by `rewrapSlice`. */
  beginRotation(master: Uint8Array, slots: NewSlots): void {
    const { keyringId, generation, keys } = this.#masters;
    const before = this.#master();
    const next = generation + 1;
    withKeyringErrors(this.path, () =>
      this.#within(() => {
        this.#assertCurrent();
        if (readFact(this.#file.database, "previous") !== null)
          throw refused("INPUT_INVALID", "The last rotation of the main key is not finished.");
        writeSlots(this.#file.database, slots);
        writeFact(this.#file.database, "previous", wrapSecret(before, master, next, [keyringId, "previous"]));
        this.#writeGeneration(next);
      }),
    );
    this.#masters = { keyringId, generation: next, keys: new Map([...keys, [next, master]]) };
  }

  /** Returns what wraps the slots: the master key, with what it is bound to. */
  get slotParts(): SlotParts {
    const { keyringId, generation } = this.#masters;
    return { keyringId, generation, master: this.#master() };
  }

  /** Replaces slots of the same master key. */
  replaceSlots(slots: NewSlots): void {
    withKeyringErrors(this.path, () =>
      this.#within(() => {
        this.#assertCurrent();
        writeSlots(this.#file.database, slots);
      }),
    );
  }

  get nextGeneration(): number {
    return this.#masters.generation + 1;
  }

  get isRotating(): boolean {
    return withKeyringErrors(this.path, () => readFact(this.#file.database, "previous") !== null);
  }

  /** Wraps secrets after `afterNumber` again. Returns the last number of the slice; null when the rotation is finished. */
  rewrapSlice(afterNumber: number): number | null {
    const { keyringId, generation } = this.#masters;
    const master = this.#master();
    return withKeyringErrors(this.path, () =>
      this.#within(() => {
        this.#assertCurrent();
        const sql = `SELECT secrets.number, id, namespace, agent_id, session_id, wrapped FROM secrets
          LEFT JOIN data_keys USING (number) WHERE secrets.number > ? ORDER BY secrets.number LIMIT ${sliceKeys}`;
        const rows = this.#statement(sql).all(afterNumber);
        for (const row of rows) {
          const kept = generationOf(row["wrapped"] as Uint8Array);
          if (kept === 0 || kept === generation) continue;
          const name =
            row["number"] === proofKeyNumber
              ? [keyringId, "proof key"]
              : nameOf(keyringId, row["id"] as Uint8Array, placeOf(row));
          const secret = this.#unwrappedAs(row["wrapped"] as Uint8Array, name);
          const wrapped = wrapSecret(secret, master, generation, name);
          this.#run("UPDATE secrets SET wrapped = ? WHERE number = ?", wrapped, row["number"] as number);
        }
        if (rows.length === sliceKeys) return Number(rows.at(-1)?.["number"]);
        writeFact(this.#file.database, "previous", null);
        return null;
      }),
    );
  }

  close(): void {
    for (const key of this.#masters.keys.values()) key.fill(0);
    if (this.#file.database.isOpen) this.#file.database.close();
  }

  #found({ namespace, agentId, sessionId }: KeyPlace): DataKey | null {
    const row = this.#one(
      `SELECT * FROM data_keys JOIN secrets USING (number)
       WHERE namespace = ? AND agent_id = ? AND session_id = ? AND destroyed_at_ms IS NULL ORDER BY number DESC LIMIT 1`,
      namespace,
      agentId,
      sessionId,
    );
    return row === undefined ? null : { id: Buffer.from(row["id"] as Uint8Array), secret: this.#unwrapped(row) };
  }

  #made(namespace: string, agentId: string, sessionId: string): DataKey {
    const { keyringId, generation } = this.#masters;
    this.#assertCurrent();
    const [id, secret] = [secretBytes(keyIdBytes), secretBytes(keyBytes)];
    const name = nameOf(keyringId, id, { namespace, agentId, sessionId });
    const wrapped = wrapSecret(secret, this.#master(), generation, name);
    const sql = `INSERT INTO data_keys (id, namespace, agent_id, session_id, created_at_ms) VALUES (?, ?, ?, ?, ?)`;
    const { lastInsertRowid } = this.#run(sql, id, namespace, agentId, sessionId, this.#clock.nowMs());
    this.#run("INSERT INTO secrets VALUES (?, ?)", lastInsertRowid, wrapped);
    return { id, secret };
  }

  #unwrapped(row: Row): Buffer {
    return this.#unwrappedAs(row["wrapped"] as Uint8Array, nameOf(this.id, row["id"] as Uint8Array, placeOf(row)));
  }

  #unwrappedAs(wrapped: Uint8Array | undefined, name: readonly string[]): Buffer {
    const generation = generationOf(wrapped ?? new Uint8Array());
    if (generation > this.#masters.generation) throw this.#rotated();
    const master = this.#masters.keys.get(generation);
    const secret = master === undefined || wrapped === undefined ? null : unwrapSecret(wrapped, master, name);
    if (secret !== null) return secret;
    throw refused("KEYRING_DAMAGED", "A key of the keyring is damaged, or stands in the place of another.", {
      path: this.path,
    });
  }

  /**
   * Refuses to write under a previous master key: the end of a rotation deletes that key, and what it wrapped is lost.
   * @throws {ThroughlineError} MAIN_KEY_WRONG after a rotation by another process, KEYRING_IO when the file was replaced
   */
  #assertCurrent(): void {
    this.#file.assertInPlace();
    const kept = readFact(this.#file.database, "generation")?.readUInt32BE(0);
    if (kept !== this.#masters.generation) throw this.#rotated();
  }

  /** Returns the master key that wraps what is written. */
  #master(): Uint8Array {
    const { generation, keys } = this.#masters;
    const master = keys.get(generation);
    if (master !== undefined) return master;
    throw refused("KEYRING_DAMAGED", "The keyring has lost its master key.", { path: this.path, generation });
  }

  #rotated(): Error {
    const message = "Another process has replaced the main key. Open the keyring again, with the new one.";
    return refused("MAIN_KEY_WRONG", message, { keyringId: this.id });
  }

  #writeGeneration(generation: number): void {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(generation);
    writeFact(this.#file.database, "generation", bytes);
  }

  #dataVersion(): number {
    return Number(this.#one("PRAGMA data_version")?.["data_version"]);
  }

  #within<Result>(run: () => Result): Result {
    const { database } = this.#file;
    database.exec("BEGIN IMMEDIATE");
    try {
      const result = run();
      database.exec("COMMIT");
      return result;
    } catch (error) {
      if (database.isTransaction) database.exec("ROLLBACK");
      throw error;
    }
  }

  #one(sql: string, ...values: readonly SQLInputValue[]): Row | undefined {
    return this.#statement(sql).get(...values);
  }

  #run(sql: string, ...values: readonly SQLInputValue[]): { readonly lastInsertRowid: number | bigint } {
    return this.#statement(sql).run(...values);
  }

  #statement(sql: string): StatementSync {
    const found = this.#statements.get(sql) ?? this.#file.database.prepare(sql);
    this.#statements.set(sql, found);
    return found;
  }
}

/** Writes what a new keyring holds beside its slots. */
export function fillKeyring(
  database: DatabaseSync,
  { keyringId, master, scope }: { readonly keyringId: string; readonly master: Uint8Array; readonly scope: string },
): void {
  const generation = Buffer.alloc(4);
  generation.writeUInt32BE(1);
  writeFact(database, "id", Buffer.from(keyringId, "hex"));
  writeFact(database, "generation", generation);
  writeFact(database, "scope", Buffer.from(scope));
  const wrapped = wrapSecret(secretBytes(keyBytes), master, 1, [keyringId, "proof key"]);
  database.prepare("INSERT INTO secrets VALUES (?, ?)").run(proofKeyNumber, wrapped);
}
