import type { SplitRequest } from "./split-request.ts";
import type { WireApi } from "./wire-api.ts";

/** Limits the bytes that are stored of an unparsed body. Of a larger body only the hash and size are stored. */
const mostUnreadBytes = 1024 * 1024;

/**
 * Creates the request for a body that is passed on without parsing. Such a body is not JSON, has no messages, or
 * exceeds the parse limits. The log stores its bytes up to 1 MiB.
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

/** Returns the frame of an unparsed body; it is empty for a body that is too large to store. */
export function unreadFrame(body: Uint8Array): { readonly frame: readonly string[]; readonly encoding: "base64" } {
  const frame = body.length > mostUnreadBytes ? [] : [Buffer.from(body).toString("base64")];
  return { frame, encoding: "base64" };
}
