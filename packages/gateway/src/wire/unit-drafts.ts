import type { MessageDraft } from "@throughline/core/internal";
import { hasErrorCode } from "@throughline/core";
import { partsOf } from "./message-parts.ts";
import type { RequestUnit } from "./split-request.ts";
import { apiReadings, isReply, type WireApi } from "./wire-api.ts";

/** Holds a message as a message record, or as a custom record when the message format cannot express it. */
export type UnitDraft =
  | MessageDraft
  | { readonly type: "custom"; readonly customType: "throughline-gateway.message"; readonly data: unknown };

const customType = "throughline-gateway.message";

/** Limits the search for the reply of a tool result, because results stand near their reply. */
const farthestCall = 64;

/** Returns the records of a message in order. There is at least one. */
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
  // The value is wrapped in an object, because only a redaction may leave a record without data.
  const data = { value: values.length === 1 ? only : values };
  return { type: "custom", customType, data };
}

/** Reads a tool result together with the reply before it, because only that reply names the tool. */
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
    // The messages before may be unreadable themselves. Then the result stays without the tool's name.
    if (!hasErrorCode(error, "INPUT_INVALID")) throw error;
    return drafts;
  }
}
