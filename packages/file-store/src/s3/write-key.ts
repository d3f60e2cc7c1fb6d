import { ThroughlineError } from "@throughline/core";
import { decodedKey } from "./list-keys.ts";
import { elementsOf, textOf, xmlText } from "./read-xml.ts";
import type { S3Requests } from "./s3-requests.ts";

/** S3 takes parts from 5 MiB on, and at most 10,000 of them. */
const partBytes = 5 * 1024 * 1024;

/** Writes an object in one request, or in parts when it is larger than one. One part is in memory at a time. */
export async function writeKey(
  requests: S3Requests,
  key: string,
  content: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const parts = partsOf(content);
  const first = await parts.next();
  const start = first.done === true ? new Uint8Array() : first.value;
  if (start.byteLength < partBytes) {
    await requests.send({ method: "PUT", key, body: start, signal });
    return;
  }
  const begun = await requests.send({ method: "POST", key, query: { uploads: "" }, signal }, [200]);
  const upload = { uploadId: textOf(begun.text, "UploadId") };
  try {
    const tags: string[] = [];
    for (let body: Uint8Array<ArrayBuffer> | null = start; body !== null; body = (await parts.next()).value ?? null) {
      const query = { ...upload, partNumber: String(tags.length + 1) };
      const { headers } = await requests.send({ method: "PUT", key, query, body, signal }, [200]);
      tags.push(headers.get("etag") ?? "");
    }
    await complete(requests, { key, query: upload, tags, signal });
  } catch (error) {
    await parts.return(undefined);
    await abortUpload(requests, key, upload);
    throw error;
  }
}

async function complete(
  requests: S3Requests,
  {
    key,
    query,
    tags,
    signal,
  }: {
    readonly key: string;
    readonly query: { readonly uploadId: string };
    readonly tags: readonly string[];
    readonly signal: AbortSignal | undefined;
  },
): Promise<void> {
  const parts = tags.map(
    (tag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${xmlText(tag)}</ETag></Part>`,
  );
  const body = new TextEncoder().encode(`<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`);
  const { status, isRepeat } = await requests.send({ method: "POST", key, query, body, signal }, [200, 404]);
  // The answer to an attempt that was carried out may be lost: the upload is then unknown, and the object is there.
  if (status === 404 && !(isRepeat && (await isThere(requests, key))))
    throw new ThroughlineError("STORE_UNREACHABLE", `The object storage no longer knows the upload of ${key}.`, {
      outcome: "not-applied",
      details: { key },
      remedy: "Put the file again. If it fails again, look for a rule of the bucket that aborts uploads.",
    });
}

async function isThere(requests: S3Requests, key: string): Promise<boolean> {
  const query = { "list-type": "2", prefix: key, "max-keys": "1" };
  const { text } = await requests.send({ method: "GET", key: "", query }, [200]);
  return elementsOf(text, "Contents").length > 0;
}

/** A failure leaves parts that are not visible. `abortUnfinished` removes them a day later. */
async function abortUpload(requests: S3Requests, key: string, query: { readonly uploadId: string }): Promise<void> {
  try {
    await requests.send({ method: "DELETE", key, query }, [200, 204, 404]);
  } catch {
    // The error of the write says more.
  }
}

/** Removes the parts of uploads that began before a time. */
export async function abortUnfinished(requests: S3Requests, prefix: string, beforeMs: number): Promise<void> {
  const query = { uploads: "", prefix, "encoding-type": "url" };
  // A service without this list has no parts to remove, or removes them by a rule of its own.
  const { status, text } = await requests.send({ method: "GET", key: "", query }, [200, 404, 501]);
  if (status !== 200) return;
  for (const each of elementsOf(text, "Upload"))
    if (Date.parse(textOf(each, "Initiated")) < beforeMs)
      await requests.send(
        { method: "DELETE", key: decodedKey(textOf(each, "Key")), query: { uploadId: textOf(each, "UploadId") } },
        [200, 204, 404],
      );
}

/**
 * Yields the content in parts. The last one is smaller, and there is none for empty content. Each part is valid until the
 * next one is asked for, because a file of 100 MB must not cost 100 MB of memory.
 */
async function* partsOf(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array<ArrayBuffer>, undefined> {
  const part = new Uint8Array(partBytes);
  let filled = 0;
  for await (const piece of content)
    for (let at = 0; at < piece.byteLength;) {
      const taken = piece.subarray(at, at + partBytes - filled);
      part.set(taken, filled);
      at += taken.byteLength;
      filled += taken.byteLength;
      if (filled < partBytes) continue;
      yield part;
      filled = 0;
    }
  if (filled > 0) yield part.subarray(0, filled);
  return undefined;
}
