import type { SplitRequest } from "./split-request.ts";
import type { WireApi } from "./wire-api.ts";

/** More of a body that was not read is not kept: its hash and its size are. */
const mostUnreadBytes = 1024 * 1024;

/**
 * A body that is passed on without a look into it: it is not JSON, has no messages, or has more values than are read. A log
 * keeps its bytes, up to 1 MiB.
 */
export function unreadRequest(api: WireApi, body: Uint8Array): SplitRequest {
  return {
    api,
    text: "",
    systemParts: [],
    pieces: [],
    units: [],
    separator: ",",
    isPlain: false,
    unread: body,
    names: [],
    member: () => undefined,
    memberText: () => null,
    partHash: () => null,
  };
}

/** What the frame of a body holds that was not read; empty for one that is too large to be kept. */
export function unreadFrame(body: Uint8Array): { readonly frame: readonly string[]; readonly encoding: "base64" } {
  const frame = body.length > mostUnreadBytes ? [] : [Buffer.from(body).toString("base64")];
  return { frame, encoding: "base64" };
}
