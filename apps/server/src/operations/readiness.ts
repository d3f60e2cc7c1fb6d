import type { SessionStore } from "@throughline/core";
import { tokensRef } from "../security/token-store.ts";

type Readiness = "ready" | "draining" | "store-unreachable";

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

export function createReadinessCheck(
  store: SessionStore,
  { nowMs, onFailure }: { readonly nowMs: () => number; readonly onFailure: (error: unknown) => void },
): ReadinessCheck {
  let isDraining = false;
  let asked: { readonly atMs: number; readonly answer: Promise<boolean> } | null = null;
  const reaches = (): Promise<boolean> =>
    store.load(tokensRef).then(
      () => true,
      (error: unknown) => {
        onFailure(error);
        return false;
      },
    );
  return {
    async state() {
      if (isDraining) return "draining";
      if (asked === null || nowMs() - asked.atMs >= believedMs) asked = { atMs: nowMs(), answer: reaches() };
      return (await asked.answer) ? "ready" : "store-unreachable";
    },
    drain: () => void (isDraining = true),
    get isDraining() {
      return isDraining;
    },
    servesWhileDraining: true,
  };
}
