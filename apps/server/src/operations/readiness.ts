import { openSession, type SessionStore } from "@throughline/core";
import { patchEntry, systemRandom, updateEntry } from "@throughline/core/internal";
import { tokensRef } from "../security/token-store.ts";

type Readiness = "ready" | "draining" | "store-unreachable" | "store-not-writable";

/** The session that is written to see whether a store that took no write takes one again. */
const probeRef = { ...tokensRef, key: "readiness" };

/** An answer of the store is believed for so long. */
const believedMs = 2000;

/** Says whether requests should come here. */
export interface ReadinessCheck {
  state(): Promise<Readiness>;
  /** From now on the node is draining. */
  drain(): void;
  readonly isDraining: boolean;
  /** False once the node takes no new requests. */
  servesWhileDraining: boolean;
}

interface ReadinessParts {
  readonly nowMs: () => number;
  /** Whether the newest write failed because the store takes none. */
  readonly isUnwritable: () => boolean;
  readonly onFailure: (error: unknown) => void;
}

export function createReadinessCheck(
  store: SessionStore,
  { nowMs, isUnwritable, onFailure }: ReadinessParts,
): ReadinessCheck {
  let isDraining = false;
  let asked: { readonly atMs: number; readonly answer: Promise<Readiness> } | null = null;
  const look = async (): Promise<Readiness> => {
    try {
      await store.load(tokensRef);
    } catch (error) {
      onFailure(error);
      return "store-unreachable";
    }
    if (!isUnwritable()) return "ready";
    try {
      await openSession(store, probeRef, { random: systemRandom });
      await updateEntry(store, probeRef, (entry) => patchEntry(entry, { atMs: nowMs() }));
      return "ready";
    } catch (error) {
      onFailure(error);
      return "store-not-writable";
    }
  };
  return {
    async state() {
      if (isDraining) return "draining";
      if (asked === null || nowMs() - asked.atMs >= believedMs) asked = { atMs: nowMs(), answer: look() };
      return asked.answer;
    },
    drain: () => void (isDraining = true),
    get isDraining() {
      return isDraining;
    },
    servesWhileDraining: true,
  };
}
