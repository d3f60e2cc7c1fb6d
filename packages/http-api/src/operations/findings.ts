import type { Finding, SessionEvent } from "@throughline/core";

/** Limits the memory for findings; the oldest finding is dropped first. */
const mostFindings = 1000;

/** Remembers the findings of the store since the start, because session lists show them. */
export interface Findings {
  take(event: SessionEvent): void;
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
