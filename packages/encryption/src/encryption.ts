import { createHmac, timingSafeEqual } from "node:crypto";
import {
  assertKnownOptions,
  type CodecContext,
  optionKinds,
  type OptionTable,
  refused,
} from "@throughline/core/internal";
import { type Clock, hasErrorCode, type PayloadCodec, type ThroughlineError } from "@throughline/core";
import { indexPlace, type KeyPlace } from "./key-place.ts";
import type { Keyring } from "./keyring.ts";
import { makeSlots } from "./keyring-slots.ts";
import type { MainKey } from "./main-key.ts";
import { mainKeyKind } from "./main-key-kind.ts";
import { boundBytes, payloadHeader, payloadKey, payloadParts, payloadsOfSalt, saltBytes } from "./payload-format.ts";
import { RecentMap } from "./recent-map.ts";
import { keyBytes, seal, unseal } from "./sealed-bytes.ts";
import { secretBytes } from "./secret-bytes.ts";
import { SearchTokens } from "./search-tokens.ts";

/** States which payloads share a data key, and so what can be erased alone. */
export type KeyScope = "session" | "agent" | "namespace";

/** States what a store may index: words as keyed tokens, or nothing. */
export type SearchSetting = "words" | "off";

/** Names what is erased: a namespace, an agent of it, or a session of the agent. */
export interface ErasureTarget {
  /** States the namespace. */
  readonly namespace: string;
  /** Names the agent. Required in the namespace `""`, which is everybody's. @default every agent of the namespace */
  readonly agentId?: string | undefined;
  /** States the id of the session, which needs an agent. @default every session, and the files of the agents */
  readonly sessionId?: string | undefined;
}

/** States that keys were destroyed. A person who asked for it can keep it. It holds no text of a session. */
export interface ErasureProof {
  /** States the version of the format. */
  readonly version: 1;
  /** States the id of the keyring. */
  readonly keyringId: string;
  /** Lists the ids of the destroyed keys in hex. Each payload in a backup starts with the id of its key, after one byte. */
  readonly keyIds: readonly string[];
  /** States the time of the destruction in ISO 8601. */
  readonly destroyedAt: string;
  /** States the reason that was given. */
  readonly reason: string;
  /** Signs the other fields with HMAC-SHA-256 under a key of the keyring, in hex. */
  readonly signature: string;
}

/** Describes a keyring. */
export interface KeyringStatus {
  /** States the id of the keyring. */
  readonly keyringId: string;
  /** States the path of the keyring. */
  readonly path: string;
  /** States which payloads share a key. */
  readonly scope: KeyScope;
  /** Counts the keys that decrypt. */
  readonly keys: number;
  /** Counts the keys that were destroyed. */
  readonly destroyedKeys: number;
  /** Counts the erasures that have begun and are not done; `resumeErasures` completes them. */
  readonly unfinishedErasures: number;
  /** States whether keys are left under the previous main key; `finishRotation` wraps them. */
  readonly isRotating: boolean;
}

/** Encrypts what a store keeps: pass it to the store as `codec`. */
export interface Encryption extends PayloadCodec {
  /** Describes the keyring. @throws {ThroughlineError} KEYRING_IO, KEYRING_DAMAGED */
  status(): KeyringStatus;
  /**
   * Destroys the keys of a target. What they encrypted cannot be read again, in backups either. A copy of the keyring from
   * before, with its main key, still reads it. Other processes notice within 100 ms. Forks that share records
   * lose them: use `eraseSessions` for sessions. After an interruption the same call destroys the rest.
   * @throws {ThroughlineError} INPUT_INVALID when the keyring has no keys of such a target alone, KEYRING_IO
   */
  destroyKeys(target: ErasureTarget, reason: string): Promise<ErasureProof>;
  /** Returns whether this keyring signed the proof, and has none of its keys. */
  checkProof(proof: ErasureProof): boolean;
  /**
   * Replaces the main key and the recovery key. No payload is written. From its start only the new keys open the keyring;
   * a process that is killed leaves it readable, and `finishRotation` does the rest.
   * @throws {ThroughlineError} INPUT_INVALID while a rotation is not finished, KEYRING_IO, MAIN_KEY_WRONG
   */
  rotateMainKey(mainKey: MainKey): Promise<{ readonly recoveryKey: string }>;
  /**
   * Replaces the recovery key, when the printed one was lost. The main key stays. When others saw the key,
   * call `rotateMainKey`: with an older copy of the keyring the key that was seen still opens this one.
   * @throws {ThroughlineError} KEYRING_IO, MAIN_KEY_WRONG after a rotation by another process
   */
  replaceRecoveryKey(): Promise<{ readonly recoveryKey: string }>;
  /** Finishes a rotation that was interrupted. @throws {ThroughlineError} KEYRING_IO, KEYRING_DAMAGED */
  finishRotation(): Promise<void>;
  /** Closes the keyring, and overwrites its keys in memory. Close the stores first. */
  close(): void;
}

/** A store keeps the name of its codec, and refuses another keyring before it decodes anything. */
export function codecName(keyringId: string): string {
  return `throughline-encryption-1/${keyringId.slice(0, 16)}`;
}

const keysInMemory = 1000;
const changesSeenAfterMs = 100;

/** Holds a key that encrypts payloads of one place, and how often it still may. */
interface Writer {
  readonly header: Buffer;
  readonly key: Buffer;
  left: number;
}

export class KeyringEncryption implements Encryption {
  readonly name: string;
  declare readonly searchToken?: NonNullable<PayloadCodec["searchToken"]>;
  /** For `eraseSessions`. */
  readonly keyring: Keyring;
  readonly scope: KeyScope;
  readonly #clock: Clock;
  readonly #writers = new RecentMap<Writer>(keysInMemory, ({ key }) => key.fill(0));
  readonly #readers = new RecentMap<Buffer>(keysInMemory, (key) => key.fill(0));
  readonly #tokens = new SearchTokens();
  #lookedAtMs: number;
  #isClosed = false;

  constructor(
    keyring: Keyring,
    { scope, clock, search }: { readonly scope: KeyScope; readonly clock: Clock; readonly search: SearchSetting },
  ) {
    if (search === "words") this.searchToken = (word, namespace, purpose) => this.#tokenOf(word, namespace, purpose);
    this.keyring = keyring;
    this.scope = scope;
    this.#clock = clock;
    this.#lookedAtMs = clock.nowMs();
    this.name = codecName(keyring.id);
  }

  encode(plain: Uint8Array, context: CodecContext): Uint8Array {
    this.#notice();
    const writer = this.#writerOf(context);
    writer.left -= 1;
    return seal(writer.header, { key: writer.key, plain, bound: boundBytes(writer.header, context) });
  }

  decode(coded: Uint8Array, context: CodecContext): Uint8Array {
    this.#notice();
    const { header, keyId, salt, sealed } = payloadParts(coded);
    const name = Buffer.from(header).toString("latin1");
    let key = this.#readers.get(name);
    try {
      key ??= this.#readers.set(name, payloadKey(this.keyring.secretOf(keyId), salt));
    } catch (error) {
      // A backup from before an erasure is listed with all its sessions; only the records of this one are lost.
      if (context.part === "entry" && hasErrorCode(error, "KEY_DESTROYED")) return erasedEntry(error);
      throw error;
    }
    const plain = unseal(sealed, { key, bound: boundBytes(header, context) });
    if (plain !== null) return plain;
    const { part, id } = context;
    throw refused("PAYLOAD_ALTERED", "The payload was changed, or it was moved here from another place.", { part, id });
  }

  #tokenOf(word: string, namespace: string, purpose: "index" | "search" = "index"): string {
    this.#notice();
    const place = indexPlace(namespace);
    const { keyring } = this;
    return this.#tokens.tokenOf(word, namespace, () =>
      purpose === "search" ? (keyring.foundKey(place)?.secret ?? null) : keyring.keyOf(place).secret,
    );
  }

  status(): KeyringStatus {
    this.#assertOpen();
    const { id, path, isRotating } = this.keyring;
    const { keys, destroyed: destroyedKeys } = this.keyring.counts();
    const unfinishedErasures = this.keyring.erasures().length;
    return { keyringId: id, path, scope: this.scope, keys, destroyedKeys, unfinishedErasures, isRotating };
  }

  async destroyKeys(target: ErasureTarget, reason: string): Promise<ErasureProof> {
    assertKnownOptions<ErasureTarget>("destroyKeys", target, targetTable);
    this.#assertOpen();
    this.assertErasable(target);
    const destroyedAtMs = this.#clock.nowMs();
    const keyIds: string[] = [];
    for (;;) {
      const slice = this.keyring.destroySlice(definedOf(target), destroyedAtMs, reason);
      this.#forget();
      if (slice.length === 0) break;
      keyIds.push(...slice);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return this.signed(keyIds, destroyedAtMs, reason);
  }

  /** @throws {ThroughlineError} INPUT_INVALID when a key of the target is also the key of something else */
  assertErasable({ namespace, agentId, sessionId }: ErasureTarget): void {
    if (sessionId !== undefined && agentId === undefined)
      throw refused("INPUT_INVALID", "A session is erased with the agent that it belongs to: state `agentId`.");
    if (namespace === "" && agentId === undefined)
      throw refused("INPUT_INVALID", 'The namespace "" is everybody\'s: state `agentId`.');
    const isShared =
      (sessionId !== undefined && this.scope !== "session") || (agentId !== undefined && this.scope === "namespace");
    if (isShared)
      throw refused(
        "INPUT_INVALID",
        `The keyring has one key for each ${this.scope}, so no part of it is erased alone.`,
        {
          scope: this.scope,
        },
      );
  }

  /** Returns the proof that these keys were destroyed. */
  signed(keyIds: readonly string[], destroyedAtMs: number, reason: string): ErasureProof {
    const proof = {
      version: 1,
      keyringId: this.keyring.id,
      keyIds,
      destroyedAt: isoOf(destroyedAtMs),
      reason,
    } as const;
    return { ...proof, signature: this.#signatureOf(proof) };
  }

  nowMs(): number {
    return this.#clock.nowMs();
  }

  checkProof(proof: ErasureProof): boolean {
    this.#assertOpen();
    const [given, own] = [Buffer.from(proof.signature, "hex"), Buffer.from(this.#signatureOf(proof), "hex")];
    return (
      given.byteLength === own.byteLength && timingSafeEqual(given, own) && this.keyring.areDestroyed(proof.keyIds)
    );
  }

  async rotateMainKey(mainKey: MainKey): Promise<{ readonly recoveryKey: string }> {
    assertKnownOptions<{ readonly mainKey: MainKey }>("rotateMainKey", { mainKey }, { mainKey: mainKeyKind });
    this.#assertOpen();
    const master = secretBytes(keyBytes);
    const { id: keyringId, nextGeneration: generation } = this.keyring;
    const slots = await makeSlots(mainKey, { keyringId, generation, master });
    this.keyring.beginRotation(master, slots);
    await this.finishRotation();
    return { recoveryKey: slots.recoveryKey };
  }

  async replaceRecoveryKey(): Promise<{ readonly recoveryKey: string }> {
    this.#assertOpen();
    const slots = await makeSlots(null, this.keyring.slotParts);
    this.keyring.replaceSlots(slots);
    return { recoveryKey: slots.recoveryKey };
  }

  async finishRotation(): Promise<void> {
    this.#assertOpen();
    if (!this.keyring.isRotating) return;
    for (let after: number | null = -1; after !== null;) {
      after = this.keyring.rewrapSlice(after);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#forget();
    this.keyring.close();
  }

  #signatureOf({ version, keyringId, keyIds, destroyedAt, reason }: Omit<ErasureProof, "signature">): string {
    const text = JSON.stringify([version, keyringId, keyIds, destroyedAt, reason]);
    return createHmac("sha256", this.keyring.proofKey()).update(text).digest("hex");
  }

  #writerOf(context: CodecContext): Writer {
    const place = this.#placeOf(context);
    const name = JSON.stringify([place.namespace, place.agentId, place.sessionId]);
    const found = this.#writers.get(name);
    if (found !== undefined && found.left > 0) return found;
    const { id, secret } = this.keyring.keyOf(place);
    const salt = secretBytes(saltBytes);
    return this.#writers.set(name, {
      header: payloadHeader(id, salt),
      key: payloadKey(secret, salt),
      left: payloadsOfSalt,
    });
  }

  #placeOf({ namespace, agentId, sessionId }: CodecContext): KeyPlace {
    return {
      namespace,
      agentId: this.scope === "namespace" ? "" : agentId,
      sessionId: this.scope === "session" ? sessionId : "",
    };
  }

  /** Forgets the keys when another process has changed the keyring, because it may have destroyed some. */
  #notice(): void {
    this.#assertOpen();
    const nowMs = this.#clock.nowMs();
    if (Math.abs(nowMs - this.#lookedAtMs) < changesSeenAfterMs) return;
    this.#lookedAtMs = nowMs;
    if (this.keyring.hasChanged()) this.#forget();
  }

  #forget(): void {
    this.#tokens.forget();
    this.#writers.clear();
    this.#readers.clear();
  }

  #assertOpen(): void {
    if (this.#isClosed) throw refused("STORE_CLOSED", "The encryption is closed. Close the stores that use it first.");
  }
}

const { text, filledText, required } = optionKinds;
const targetTable: OptionTable<ErasureTarget> = {
  namespace: required(text),
  agentId: filledText,
  sessionId: filledText,
};

function definedOf({ namespace, agentId, sessionId }: ErasureTarget): Partial<KeyPlace> {
  return {
    namespace,
    ...(agentId === undefined ? {} : { agentId }),
    ...(sessionId === undefined ? {} : { sessionId }),
  };
}

function erasedEntry({ details }: ThroughlineError): Buffer {
  return Buffer.from(JSON.stringify({ label: `erased on ${String(details["destroyedAt"]).slice(0, 10)}` }));
}

function isoOf(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
