import { elementsOf, textOf } from "./read-xml.ts";
import type { S3Requests } from "./s3-requests.ts";

interface ListedKey {
  readonly key: string;
  readonly bytes: number;
  readonly modifiedMs: number;
}

interface ListBounds {
  readonly after: string | undefined;
  readonly limit: number;
  readonly signal: AbortSignal | undefined;
}

/** Returns the objects whose keys begin with a prefix, in order. A service may return fewer at once than were asked for. */
export async function listKeys(
  requests: S3Requests,
  prefix: string,
  { after, limit, signal }: ListBounds,
): Promise<readonly ListedKey[]> {
  const found: ListedKey[] = [];
  for (let last = after; found.length < limit;) {
    const query = {
      "list-type": "2",
      prefix,
      "max-keys": String(Math.min(1000, limit - found.length)),
      "encoding-type": "url",
      ...(last === undefined ? {} : { "start-after": last }),
    };
    const { text } = await requests.send({ method: "GET", key: "", query, signal }, [200]);
    const page = elementsOf(text, "Contents").map(listedKey);
    found.push(...page);
    last = page.at(-1)?.key;
    if (textOf(text, "IsTruncated") !== "true" || last === undefined) break;
  }
  return found;
}

function listedKey(xml: string): ListedKey {
  return {
    key: decodedKey(textOf(xml, "Key")),
    bytes: Number(textOf(xml, "Size")),
    modifiedMs: Date.parse(textOf(xml, "LastModified")),
  };
}

/** With the encoding that was asked for, a space is a plus. */
export function decodedKey(text: string): string {
  return decodeURIComponent(text.replaceAll("+", " "));
}
