import type { JsonObject } from "../json-value.ts";

/** The service stores each response so that a request can continue it with `previous_response_id`. */
interface StoredResponse {
  /** Holds all input items and output items of the response, because a continuation starts from all of them. */
  readonly items: readonly JsonObject[];
}

/** Stores what the Responses endpoint must remember between requests. */
export interface ResponseLedger {
  store(id: string, response: StoredResponse): void;
  find(id: string): StoredResponse | undefined;
  /** Returns the id of the reasoning item that directly preceded this item, or undefined. */
  reasoningOf(itemId: string): string | undefined;
  /** Records for each item whether a reasoning item directly preceded it. */
  issued(output: readonly JsonObject[]): void;
}

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
