import {
  assertKnownOptions,
  optionKinds,
  type OptionTable,
  refused,
  systemClock,
  systemRandom,
} from "@throughline/core/internal";
import type { FileStore } from "../file-store.ts";
import { listKeys } from "./list-keys.ts";
import { readKey } from "./read-key.ts";
import { createRequests, type S3Credentials } from "./s3-requests.ts";
import { abortUnfinished, writeKey } from "./write-key.ts";

/** Configures `createS3FileStore`. */
export interface S3FileStoreOptions {
  /** Names the bucket, which must exist. */
  readonly bucket: string;
  /** Names the region. @default "us-east-1" */
  readonly region?: string | undefined;
  /** States the address of the service: `https://ACCOUNT.r2.cloudflarestorage.com`. @default that of AWS in the region */
  readonly endpoint?: string | undefined;
  /** Puts the bucket into the path and not into the host. @default true with an `endpoint` */
  readonly pathStyle?: boolean | undefined;
  /** Sets the keys, or returns them before each request, for keys that expire. */
  readonly credentials: S3Credentials | (() => S3Credentials | Promise<S3Credentials>);
  /** Begins the name of every object: `throughline/`. @default "" */
  readonly prefix?: string | undefined;
  /** Limits the time without a byte of the answer, in milliseconds. @default 30,000 */
  readonly timeoutMs?: number | undefined;
  /** Limits the attempts after the first one. @default 4 */
  readonly retries?: number | undefined;
  /** Sends the requests. @default the runtime's own */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

const { required, filledText, text, flag, callback, integer, either, objectOf, secret } = optionKinds;
const keys = objectOf({
  accessKeyId: required(filledText),
  secretAccessKey: required(secret(filledText)),
  sessionToken: secret(filledText),
});
const table: OptionTable<S3FileStoreOptions> = {
  bucket: required(filledText),
  region: filledText,
  endpoint: filledText,
  pathStyle: flag,
  credentials: required(secret(either(keys, callback))),
  prefix: text,
  timeoutMs: integer({ min: 1 }),
  retries: integer({ min: 0 }),
  fetch: callback,
};

/**
 * Creates a file store in a bucket of AWS S3, or of a service with its API. Requests are signed with the hash of their
 * body; a failure that may pass is repeated.
 * @throws {ThroughlineError} INPUT_INVALID
 * @example
 * const files = createS3FileStore({
 *   bucket: "sessions",
 *   region: "eu-central-1",
 *   credentials: { accessKeyId, secretAccessKey },
 * });
 */
export function createS3FileStore(options: S3FileStoreOptions): FileStore {
  assertKnownOptions<S3FileStoreOptions>("createS3FileStore", options, table);
  const { region = "us-east-1", credentials, prefix = "", timeoutMs = 30_000, retries = 4 } = options;
  const context = {
    requests: createRequests({
      bucketUrl: bucketUrlOf(options, region),
      region,
      credentials: async () => (typeof credentials === "function" ? credentials() : credentials),
      fetch: options.fetch ?? globalThis.fetch,
      timeoutMs,
      retries,
      clock: systemClock,
      random: systemRandom,
    }),
    clock: systemClock,
    timeoutMs,
  };
  const { requests } = context;
  const keyOf = (name: string): string => `${prefix}${name}`;
  return {
    write: (name, content, { signal } = {}) => writeKey(requests, keyOf(name), content, signal),
    async copy(from, to, { signal } = {}) {
      const source = `/${options.bucket}/${keyOf(from).split("/").map(encodeURIComponent).join("/")}`;
      const headers = { "x-amz-copy-source": source };
      const { status } = await requests.send({ method: "PUT", key: keyOf(to), headers, signal }, [200, 404]);
      if (status === 404) throw missing(from);
    },
    async *read(name, { from, to, signal }) {
      if (from < to) yield* readKey(context, { key: keyOf(name), from, to, signal, missing: () => missing(name) });
    },
    async list(below, { after, limit, signal }) {
      const found = await listKeys(requests, keyOf(below), {
        after: after === undefined ? undefined : keyOf(after),
        limit,
        signal,
      });
      return found.map(({ key, ...rest }) => ({ name: key.slice(prefix.length), ...rest }));
    },
    async remove(name) {
      await requests.send({ method: "DELETE", key: keyOf(name) }, [200, 204, 404]);
    },
    removeUnfinished: (below, beforeMs) => abortUnfinished(requests, keyOf(below), beforeMs),
  };
}

function missing(name: string): Error {
  return refused("FILE_NOT_FOUND", `There is no object ${JSON.stringify(name)} in the object storage.`, { name });
}

/** @throws {ThroughlineError} INPUT_INVALID */
function bucketUrlOf(options: S3FileStoreOptions, region: string): string {
  const {
    bucket,
    endpoint = `https://s3.${region}.amazonaws.com`,
    pathStyle = options.endpoint !== undefined,
  } = options;
  const url = URL.parse(endpoint);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw refused("INPUT_INVALID", "createS3FileStore(): `endpoint` must be an http or https address.", {});
  const path = url.pathname.replace(/\/$/, "");
  return pathStyle
    ? `${url.origin}${path}/${encodeURIComponent(bucket)}`
    : `${url.protocol}//${bucket}.${url.host}${path}`;
}
