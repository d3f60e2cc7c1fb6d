import { isFields } from "@throughline/core/internal";
import type { RebuiltRequest } from "./rebuild-request.ts";
import { bodyText, splitRequest } from "./split-request.ts";
import { apiReadings, type WireApi } from "./wire-api.ts";

/** Holds what a request through the gateway sent, in the provider's shape. */
export interface SentRequest {
  /** Holds the text of the system prompt; null without one. */
  readonly system: string | null;
  /** Holds the JSON of the tools, as it was sent; null without tools. */
  readonly tools: string | null;
  readonly messages: readonly {
    readonly value: unknown;
    /** Names the record that holds the message; null where no record does, as for a summary of the gateway. */
    readonly recordId: string | null;
  }[];
}

/** Reads a request that was rebuilt. Null for a body without messages, or of an unknown API. */
export function readSentRequest(api: unknown, { body, recordIds }: RebuiltRequest): SentRequest | null {
  const text = isWireApi(api) ? bodyText(body) : null;
  const split = text === null || !isWireApi(api) ? null : splitRequest(api, text);
  if (split === null) return null;
  const stated = ["system", "instructions"].flatMap((name) => split.member(name) ?? []);
  const leading = split.systemParts.map((part) => JSON.parse(part) as unknown);
  const system = [...stated, ...leading].map(textOf).join("\n\n");
  // A summary takes the place of the first messages, so those with a record are the last ones.
  const made = split.units.length - recordIds.length;
  const messages = split.units.flatMap(({ values }, index) =>
    values().map((value) => ({ value, recordId: recordIds[index - made] ?? null })),
  );
  return { system: system === "" ? null : system, tools: split.memberText("tools"), messages };
}

function isWireApi(api: unknown): api is WireApi {
  return typeof api === "string" && Object.hasOwn(apiReadings, api);
}

/** A system prompt is a text, a list of blocks with a text each, or a message that holds either. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(textOf).join("\n");
  return isFields(value) ? textOf(value["text"] ?? value["content"]) : "";
}
