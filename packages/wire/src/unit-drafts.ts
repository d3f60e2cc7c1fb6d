import type { MessageDraft } from "@throughline/core/internal";
import { hasErrorCode } from "@throughline/core";
import { partsOf } from "./message-parts.ts";
import type { RequestUnit } from "./split-request.ts";
import { apiReadings, isReply, type WireApi } from "./wire-api.ts";

/** What a message is kept as: a message, or as it came where no record can say it. */
export type UnitDraft =
  | MessageDraft
  | { readonly type: "custom"; readonly customType: "throughline-gateway.message"; readonly data: unknown };

const customType = "throughline-gateway.message";

/** Results stand near the reply that called for them. */
const farthestCall = 64;

/** The records that a message of a request is kept as, in their order; one at least. */
export function unitDrafts(api: WireApi, units: readonly RequestUnit[], index: number): readonly UnitDraft[] {
  const parts = partsOf(units[index]?.text ?? "");
  if (parts !== null) return parts.map((data) => ({ type: "custom", customType, data }));
  const own = units[index]?.values() ?? [];
  try {
    const drafts = readUnit(api, units, index, own);
    return drafts.length > 0 ? drafts : [asItCame(own)];
  } catch (error) {
    if (!hasErrorCode(error, "INPUT_INVALID")) throw error;
    return [asItCame(own)];
  }
}

function asItCame(values: readonly unknown[]): UnitDraft {
  const [only] = values;
  // In an object: nothing but a redaction leaves none.
  const data = { value: values.length === 1 ? only : values };
  return { type: "custom", customType, data };
}

/** A result names no tool: the reply before it does. */
function readUnit(
  api: WireApi,
  units: readonly RequestUnit[],
  index: number,
  own: readonly unknown[],
): readonly MessageDraft[] {
  const read = apiReadings[api].recordsFromMessages;
  const drafts = read(own, {});
  if (!drafts.some(({ message }) => message.role === "toolResult")) return drafts;
  const before: unknown[] = [];
  for (let at = index - 1; at >= Math.max(0, index - farthestCall); at--) {
    const values = units[at]?.values() ?? [];
    before.unshift(...values);
    if (isReply(api, values)) break;
  }
  try {
    return read([...before, ...own], {}).slice(read(before, {}).length);
  } catch (error) {
    // What stands before may be what cannot be read.
    if (!hasErrorCode(error, "INPUT_INVALID")) throw error;
    return drafts;
  }
}
