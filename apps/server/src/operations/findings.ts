import type { Finding, SessionEvent } from "@throughline/core";

/** The most findings that are remembered. */
const mostFindings = 1000;

/** What the store has found wrong since the server began, for those who list sessions. */
export interface Findings {
  take(event: SessionEvent): void;
  /** The findings about sessions of a namespace, or of one agent in it. */
  of(namespace: string, agentId: string | undefined): readonly Finding[];
}

export function createFindings(): Findings {
  const known = new Map<string, SessionEvent & { readonly name: "finding" }>();
  return {
    take(event) {
      if (event.name !== "finding") return;
      const identity = JSON.stringify(event.finding);
      known.delete(identity);
      known.set(identity, event);
      const [oldest] = known.keys();
      if (known.size > mostFindings && oldest !== undefined) known.delete(oldest);
    },
    of(namespace, agentId) {
      return Array.from(known.values()).flatMap(({ ref, finding }) => {
        const isSeen = ref?.namespace === namespace && (agentId === undefined || ref.agentId === agentId);
        return isSeen ? [finding] : [];
      });
    },
  };
}
