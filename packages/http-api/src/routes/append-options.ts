import type { AppendDraft, AppendOptions } from "@throughline/core";
import { assertFewMembers, refused } from "@throughline/core/internal";
import type { ApiRequest } from "../http/route.ts";
import type { WireAppendOptions } from "../schemas/record.ts";

/** Converts a draft of the wire format, in which bytes are base64, to an append draft. */
export function draftOf(wire: Readonly<Record<string, unknown>>): AppendDraft {
  const { sourceBase64, record } = wire;
  if (typeof sourceBase64 !== "string" || Object.hasOwn(wire, "type")) return wire as AppendDraft;
  const source = new Uint8Array(Buffer.from(sourceBase64, "base64"));
  return (record === undefined ? { source } : { source, record }) as AppendDraft;
}

/** Combines the append options of the body and the headers. @throws {ThroughlineError} INPUT_INVALID */
export function appendOptionsOf(request: Pick<ApiRequest, "header">, wire: WireAppendOptions): AppendOptions {
  const { entry, nullFields = [], idempotencyKey: ownKey, turn: ownTurn, ...options } = wire;
  const headerKey = headerKeyOf(request);
  if (headerKey !== undefined && ownKey !== undefined)
    throw refused("INPUT_INVALID", "The key is in the header and in the body; send it once.");
  const fence = request.header("throughline-fence");
  if (fence !== undefined && !/^\d{1,15}$/.test(fence))
    throw refused("INPUT_INVALID", "throughline-fence is the number of a turn.");
  if (fence !== undefined && ownTurn !== undefined)
    throw refused("INPUT_INVALID", "The turn is in the header and in the body; send it once.");
  const key = headerKey ?? ownKey;
  const turn = fence === undefined ? ownTurn : ({ action: "within", fence: Number(fence) } as const);
  assertFewMembers(entry);
  const nulls = new Set(nullFields);
  const fields = Object.entries(entry ?? {}).map(([name, value]) => {
    return [name, value === null && !nulls.has(name) ? undefined : value] as const;
  });
  return {
    ...(options as AppendOptions),
    ...(entry === undefined ? {} : { entry: Object.fromEntries(fields) }),
    ...(key === undefined ? {} : { idempotencyKey: key }),
    ...(turn === undefined ? {} : { turn }),
  };
}

/**
 * Returns the idempotency key of the header as an append option, if present. @throws {ThroughlineError} INPUT_INVALID
 */
export function idempotencyKeyOf(request: Pick<ApiRequest, "header">): { readonly idempotencyKey?: string } {
  const key = headerKeyOf(request);
  return key === undefined ? {} : { idempotencyKey: key };
}

function headerKeyOf(request: Pick<ApiRequest, "header">): string | undefined {
  const key = request.header("idempotency-key");
  if (key === undefined || /^[\x21-\x7e]{1,200}$/.test(key)) return key;
  throw refused("INPUT_INVALID", "An idempotency-key has 1 to 200 visible ASCII characters.");
}
