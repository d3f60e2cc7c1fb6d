import { openSession, type SessionStore } from "@throughline/core";
import { patchEntry, systemRandom, updateEntry } from "@throughline/core/internal";
import { tokensRef } from "../security/token-store.ts";

type Readiness = "ready" | "draining" | "store-unreachable" | "store-not-writable";

/** Test writes go to this session. They show whether a store that refused a write accepts writes again. */
const probeRef = { ...tokensRef, key: "readiness" };

/** Caches the store's answer for this long, so that frequent probes do not load the store. */
const believedMs = 2000;

export interface ReadinessCheck {
  state(): Promise<Readiness>;
  drain(): void;
  readonly isDraining: boolean;
  servesWhileDraining: boolean;
}

interface ReadinessParts {
  readonly nowMs: () => number;
  /** Returns true when the newest write failed because the store accepts no writes. */
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
