import { jsonMembers } from "./json-members.ts";

const lineFeed = 0x0a;

/**
 * The readable entries of a damaged sessions.json: those before the damage, and those behind it on lines of their own,
 * as OpenClaw and this store write them. A value that may be cut off does not count.
 */
export function* salvageEntries(bytes: Uint8Array): Generator<undefined, ReadonlyMap<string, unknown>> {
  const entries = new Map<string, unknown>();
  const take = (member: Uint8Array): void => {
    try {
      for (const [key, value] of jsonMembers(member))
        if (typeof value === "object" && value !== null && !Array.isArray(value) && !entries.has(key))
          entries.set(key, value);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
  };
  take(bytes);
  for (const member of membersByLines(bytes)) {
    take(member);
    yield;
  }
  return entries;
}

const maxStartBytes = 2048;

/** Each member of the outermost object that begins and ends with lines of two spaces, as an object of its own. */
function* membersByLines(bytes: Uint8Array): Generator<Uint8Array> {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let start = -1;
  for (let at = 0; at < text.length;) {
    const end = text.indexOf(lineFeed, at);
    const behind = end === -1 ? text.length : end;
    // A line of an entry may be as long as a skills snapshot; those that matter here are short.
    const line = behind - at > maxStartBytes ? "" : text.toString("utf8", at, behind);
    if (line.startsWith('  "') && line.endsWith('": {')) start = at;
    else if (start !== -1 && (line === "  }" || line === "  },")) {
      yield Buffer.concat([Buffer.from("{"), text.subarray(start, at), Buffer.from("}}")]);
      start = -1;
    }
    at = behind + 1;
  }
}
