import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";

/**
 * A second process that speaks the S3 API: it verifies the signature and the hash of every request, keeps objects in
 * memory, and fails in the ways that a test asks of it at `/-/control`. It shares no code with the client.
 */
interface Kept {
  readonly bytes: Buffer;
  readonly modifiedMs: number;
}

/** How an answer goes wrong, how often, and for which requests. */
export interface Fault {
  readonly kind:
    | "unavailable"
    | "denied"
    | "slow"
    | "cut"
    | "reset"
    | "lost"
    | "unanswered"
    | "error-in-200"
    | "wrong-etag"
    | "gone"
    | "no-range";
  readonly method?: string;
  readonly path?: string;
  times: number;
}

export const keys = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
const objects = new Map<string, Kept>();
const uploads = new Map<
  string,
  { key: string; startedMs: number; parts: Map<number, { bytes: Buffer; tag: string }> }
>();
const log: string[] = [];
let faults: Fault[] = [];
let aheadMs = 0;
let uploadNumber = 0;

const sha256 = (bytes: string | Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();
const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`);

function isSigned({ method = "", headers }: IncomingMessage, url: URL, body: Buffer): boolean {
  const found = /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), SignedHeaders=([^,]+), Signature=(\w+)$/.exec(
    headers.authorization ?? "",
  );
  if (found === null) return false;
  const [, id, scope = "", names = "", signature = ""] = found;
  if (id !== keys.accessKeyId || headers["x-amz-content-sha256"] !== sha256(body)) return false;
  const signed = names.split(";");
  const isWhole = ["host", "x-amz-content-sha256", "x-amz-date"].every((name) => signed.includes(name));
  const query = [...url.searchParams]
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .toSorted()
    .join("&");
  const lines = signed.map((name) => `${name}:${String(headers[name]).trim()}\n`).join("");
  const path = decodeURIComponent(url.pathname).split("/").map(encoded).join("/");
  const canonical = [method, path, query, lines, names, sha256(body)].join("\n");
  const text = ["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, sha256(canonical)].join("\n");
  const [date = "", region = "", service = "", end = ""] = scope.split("/");
  const key = hmac(hmac(hmac(hmac(`AWS4${keys.secretAccessKey}`, date), region), service), end);
  const expected = Buffer.from(hmac(key, text).toString("hex"));
  return (
    isWhole &&
    service === "s3" &&
    expected.length === signature.length &&
    timingSafeEqual(expected, Buffer.from(signature))
  );
}

function fail(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { "content-type": "application/xml" });
  response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>asked for</Message></Error>`);
}

function answer(response: ServerResponse, xml: string, headers: Record<string, string> = {}): void {
  response.writeHead(200, { "content-type": "application/xml", ...headers });
  response.end(xml === "" ? "" : `<?xml version="1.0"?>${xml}`);
}

function list(response: ServerResponse, query: URLSearchParams): void {
  const [prefix, after, most] = [
    query.get("prefix") ?? "",
    query.get("start-after") ?? "",
    Number(query.get("max-keys")),
  ];
  const names = [...objects.keys()].filter((name) => name.startsWith(prefix) && name > after).toSorted();
  // A service may return fewer objects than were asked for.
  const page = names.slice(0, Math.min(most, 400));
  const contents = page.map((name) => {
    const kept = objects.get(name);
    const time = new Date(kept?.modifiedMs ?? 0).toISOString();
    return `<Contents><Key>${encoded(name)}</Key><LastModified>${time}</LastModified><Size>${kept?.bytes.length}</Size></Contents>`;
  });
  answer(
    response,
    `<ListBucketResult><IsTruncated>${page.length < names.length}</IsTruncated>${contents.join("")}</ListBucketResult>`,
  );
}

function read(request: IncomingMessage, response: ServerResponse, key: string, fault: string | undefined): void {
  const kept = objects.get(key);
  if (kept === undefined) return fail(response, 404, "NoSuchKey");
  const [, from = "0", to = ""] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
  const ranged = request.headers.range !== undefined && fault !== "no-range";
  const bytes = ranged ? kept.bytes.subarray(Number(from), Number(to) + 1) : kept.bytes;
  response.writeHead(ranged ? 206 : 200, { "content-length": String(bytes.length), etag: '"x"' });
  if (fault === "cut") {
    response.write(bytes.subarray(0, Math.ceil(bytes.length / 2)), () => setTimeout(() => response.destroy(), 20));
  } else if (fault === "slow") response.write(bytes.subarray(0, Math.ceil(bytes.length / 2)));
  else response.end(bytes);
}

function part(response: ServerResponse, query: URLSearchParams, body: Buffer, fault: string | undefined): void {
  const upload = uploads.get(query.get("uploadId") ?? "");
  if (upload === undefined) return fail(response, 404, "NoSuchUpload");
  const tag = `"${createHash("md5").update(body).digest("hex")}"`;
  upload.parts.set(Number(query.get("partNumber")), { bytes: body, tag });
  answer(response, "", { etag: fault === "wrong-etag" ? '"0"' : tag });
}

function complete(response: ServerResponse, query: URLSearchParams, body: Buffer): void {
  const id = query.get("uploadId") ?? "";
  const upload = uploads.get(id);
  if (upload === undefined) return fail(response, 404, "NoSuchUpload");
  const named = [...body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber><ETag>([^<]+)<\/ETag>/g)];
  const parts = named.map(([, number, tag]) => ({ kept: upload.parts.get(Number(number)), tag }));
  if (parts.some(({ kept, tag }) => kept === undefined || kept.tag !== tag)) return fail(response, 400, "InvalidPart");
  if (parts.slice(0, -1).some(({ kept }) => (kept?.bytes.length ?? 0) < 5 * 1024 * 1024))
    return fail(response, 400, "EntityTooSmall");
  keep(upload.key, Buffer.concat(parts.map(({ kept }) => kept?.bytes ?? Buffer.alloc(0))));
  uploads.delete(id);
  answer(response, "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>");
}

function keep(key: string, bytes: Buffer): void {
  objects.set(key, { bytes, modifiedMs: Date.now() + aheadMs });
}

function write(request: IncomingMessage, response: ServerResponse, key: string, body: Buffer): void {
  const source = request.headers["x-amz-copy-source"];
  if (source === undefined) {
    keep(key, body);
    return answer(response, "");
  }
  const kept = objects.get(decodeURIComponent(String(source)).replace("/bucket/", ""));
  if (kept === undefined) return fail(response, 404, "NoSuchKey");
  keep(key, kept.bytes);
  answer(response, "<CopyObjectResult></CopyObjectResult>");
}

function post(response: ServerResponse, key: string, query: URLSearchParams, body: Buffer): void {
  if (query.get("uploads") === null) return complete(response, query, body);
  const id = String((uploadNumber += 1));
  uploads.set(id, { key, startedMs: Date.now() + aheadMs, parts: new Map() });
  answer(response, `<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`);
}

function listUploads(response: ServerResponse, prefix: string): void {
  const found = [...uploads].filter(([, { key }]) => key.startsWith(prefix));
  const each = found.map(
    ([id, { key, startedMs }]) =>
      `<Upload><Key>${encoded(key)}</Key><UploadId>${id}</UploadId><Initiated>${new Date(startedMs).toISOString()}</Initiated></Upload>`,
  );
  answer(response, `<ListMultipartUploadsResult>${each.join("")}</ListMultipartUploadsResult>`);
}

function serve(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
  const url = new URL(request.url ?? "/", "http://bucket.invalid");
  const { method = "" } = request;
  log.push(`${method} ${url.pathname}${url.search}`);
  const fault = takeFault(method, `${url.pathname}${url.search}`);
  if (failsEarly(request, response, fault)) return;
  if (!isSigned(request, url, body)) return fail(response, 403, "SignatureDoesNotMatch");
  const query = url.searchParams;
  const key = decodeURIComponent(url.pathname.replace(/^\/bucket\/?/, ""));
  if (fault === "lost" || fault === "unanswered") {
    const end = fault === "lost" ? () => response.destroy() : () => undefined;
    const silent = { writeHead: () => silent, end } as unknown as ServerResponse;
    return route(request, silent, { method, key, query, body, fault });
  }
  route(request, response, { method, key, query, body, fault });
}

interface Routed {
  readonly method: string;
  readonly key: string;
  readonly query: URLSearchParams;
  readonly body: Buffer;
  readonly fault: string | undefined;
}

function route(request: IncomingMessage, response: ServerResponse, { method, key, query, body, fault }: Routed): void {
  if (method === "GET" && query.has("uploads")) return listUploads(response, query.get("prefix") ?? "");
  if (method === "GET" && key === "") return list(response, query);
  if (method === "GET") return read(request, response, key, fault);
  if (method === "POST") return post(response, key, query, body);
  if (method === "PUT" && query.has("uploadId")) return part(response, query, body, fault);
  if (method === "PUT") return write(request, response, key, body);
  if (query.has("uploadId")) uploads.delete(query.get("uploadId") ?? "");
  else objects.delete(key);
  response.writeHead(204).end();
}

function takeFault(method: string, path: string): Fault["kind"] | undefined {
  const fault = faults.find(
    (each) => each.times > 0 && (each.method ?? method) === method && path.includes(each.path ?? ""),
  );
  if (fault !== undefined) fault.times -= 1;
  return fault?.kind;
}

function failsEarly(request: IncomingMessage, response: ServerResponse, fault: string | undefined): boolean {
  if (fault === "unavailable") fail(response, 503, "SlowDown");
  else if (fault === "denied") fail(response, 403, "AccessDenied");
  else if (fault === "gone") fail(response, 404, "NoSuchKey");
  else if (fault === "error-in-200") answer(response, "<Error><Code>InternalError</Code></Error>");
  else if (fault === "reset") response.destroy();
  else return fault === "slow" && request.method !== "GET";
  return true;
}

/** What a test asks of the server, and sees of it. */
function control(response: ServerResponse, body: Buffer): void {
  const asked = JSON.parse(body.toString()) as {
    faults?: Fault[];
    aheadMs?: number;
    damage?: string;
    put?: string;
    clear?: boolean;
  };
  if (asked.faults !== undefined) faults = asked.faults;
  if (asked.aheadMs !== undefined) aheadMs += asked.aheadMs;
  for (const [name, kept] of objects)
    if (asked.damage !== undefined && name.includes(asked.damage)) kept.bytes[0] = (kept.bytes[0] ?? 0) ^ 1;
  if (asked.clear === true) for (const map of [objects, uploads]) map.clear();
  const found = [...objects].map(([name, { bytes }]) => ({
    name,
    bytes: bytes.length,
    text: bytes.subarray(0, 300_000).toString("base64"),
  }));
  answer(
    response,
    JSON.stringify({ objects: found, uploads: uploads.size, log: log.splice(0), rss: process.memoryUsage().rss }),
  );
}

const server = createServer((request, response) => {
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => pieces.push(piece));
  request.on("end", () => {
    const body = Buffer.concat(pieces);
    if (request.url === "/-/control") {
      response.setHeader("content-type", "application/json");
      const json = {
        writeHead: () => undefined,
        end: (text: string) => response.end(text.replace(/^<\?xml[^>]*>/, "")),
      };
      return control(json as unknown as ServerResponse, body);
    }
    serve(request, response, body);
  });
});
// A test that keeps its process busy sends its next request on a connection that has been idle for long.
server.keepAliveTimeout = 600_000;
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
process.on("disconnect", () => process.exit());
