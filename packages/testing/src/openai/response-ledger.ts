import type { JsonObject } from "../json-value.ts";

/** A response the service keeps for `previous_response_id`. */
interface StoredResponse {
  /** Everything the response was made from, its own output included. */
  readonly items: readonly JsonObject[];
}

/** What the Responses endpoint remembers between requests. */
export interface ResponseLedger {
  store(id: string, response: StoredResponse): void;
  find(id: string): StoredResponse | undefined;
  /** The item that was issued right before this one, when that was a reasoning item. */
  reasoningOf(itemId: string): string | undefined;
  /** Remembers which item followed which reasoning item. */
  issued(output: readonly JsonObject[]): void;
}

/** An empty ledger. */
export function createResponseLedger(): ResponseLedger {
  const responses = new Map<string, StoredResponse>();
  const reasoning = new Map<string, string>();
  return {
    store: (id, response) => void responses.set(id, response),
    find: (id) => responses.get(id),
    reasoningOf: (itemId) => reasoning.get(itemId),
    issued(output): void {
      for (const [index, item] of output.entries()) {
        const before = output[index - 1];
        if (before?.["type"] === "reasoning") reasoning.set(String(item["id"]), String(before["id"]));
      }
    },
  };
}
