import { type PayloadCodec, ThroughlineError } from "@throughline/core";

/** Names the API that a provider speaks. */
export type UpstreamApi = "anthropic" | "openai" | "ollama";

/**
 * How the gateway treats a call. `record` passes the client's bytes on unchanged. `guard` does the same, and sends one
 * rebuilt request when the provider refuses the size or the history. In `stateful` mode the session holds the history,
 * and the client sends only new messages.
 */
export type GatewayMode = "record" | "guard" | "stateful";

export const gatewayModes: readonly ["record", "guard", "stateful"] = ["record", "guard", "stateful"];

export function isGatewayMode(value: unknown): value is GatewayMode {
  return (gatewayModes as readonly unknown[]).includes(value);
}

/** Describes a model provider behind the gateway. */
export interface UpstreamOptions {
  /**
   * Sets the address, without the part of the path that the provider's SDK adds: `https://api.anthropic.com`,
   * `http://127.0.0.1:11434`.
   * @default the provider's own address; Ollama's on this machine
   */
  readonly baseUrl?: string | undefined;
  /** Names the API that the provider speaks. */
  readonly api: UpstreamApi;
  /**
   * With `server`, the client sends a Throughline token and the provider gets `apiKey`. With `caller`, the client sends
   * its own provider key. @default "caller"
   */
  readonly credentials?: "server" | "caller" | undefined;
  /** Sets the mode of its calls. @default "record" */
  readonly mode?: GatewayMode | undefined;
  /** Applies only to `server` credentials. @default none is sent */
  readonly apiKey?: string | undefined;
  /**
   * Lets every token reach the files, batches and stored responses of the account. Applies only to `server`
   * credentials. @default false
   */
  readonly sharedResources?: boolean | undefined;
}

/** The first segment of a request path selects an upstream by its name. */
export interface GatewaySettings {
  /** Maps the name of each upstream, which is the first segment of a request's path, to its description. */
  readonly upstreams: Readonly<Record<string, UpstreamOptions>>;
  /**
   * Sets the behavior while the store is away. `spool` keeps calls in the journal and stores them later. `refuse` rejects
   * calls. `pass` passes them on without a record. @default "spool" with a `spoolFolder`, else "pass"
   */
  readonly onStoreDown?: "spool" | "refuse" | "pass" | undefined;
  /**
   * Sets the folder of the journal, which keeps a call from the end of its answer until the store has it. No other
   * process may use it. @default no journal: a kill of the process can lose a call whose answer the client has
   */
  readonly spoolFolder?: string | undefined;
  /** Limits the size of all files of the journal together. @default 1 GiB */
  readonly spoolBytes?: number | undefined;
  /**
   * Encrypts the files of the journal: pass the codec of the store. A file then shows the session, the time and the size
   * of its call. @default the files are plain
   */
  readonly spoolCodec?: PayloadCodec | undefined;
  /**
   * Environment variables that name proxies: `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`. Node supports them from 24.5 on.
   * @default no proxy
   */
  readonly proxyVariables?: Readonly<Record<string, string | undefined>> | undefined;
}

export interface Upstream {
  readonly name: string;
  readonly url: URL;
  /** Has no trailing slash, because the request's path starts with one. */
  readonly basePath: string;
  /** Names the API that the provider speaks. */
  readonly api: UpstreamApi;
  readonly credentials: "server" | "caller";
  readonly mode: GatewayMode;
  readonly apiKey: string | null;
  readonly sharedResources: boolean;
}

const ownUrls: Readonly<Record<UpstreamApi, string>> = {
  anthropic: "https://api.anthropic.com",
  openai: "https://api.openai.com",
  ollama: "http://127.0.0.1:11434",
};
const nameForm = /^[a-z0-9][a-z0-9-]{0,31}$/;
const takenNames: ReadonlySet<string> = new Set(["api", "inspect", "metrics", "healthz", "readyz"]);

/** @throws {ThroughlineError} CONFIG_INVALID for an invalid name or address */
export function upstreamsOf({ upstreams }: Pick<GatewaySettings, "upstreams">): ReadonlyMap<string, Upstream> {
  return new Map(
    Object.entries(upstreams).map(([name, options]) => {
      const { api, credentials = "caller", mode = "record", apiKey = null, sharedResources = false } = options;
      if (!Object.hasOwn(ownUrls, api))
        throw invalid(
          `gateway.upstreams.${name}.api must be one of ${Object.keys(ownUrls).join(", ")}.`,
          `gateway.upstreams.${name}.api`,
        );
      const url = URL.parse(options.baseUrl ?? ownUrls[api]);
      if (!nameForm.test(name) || takenNames.has(name))
        throw invalid(
          `An upstream cannot be called ${JSON.stringify(name)}: a name has 1 to 32 of a-z, 0-9 and -, and is no path of the server.`,
          `gateway.upstreams.${name}`,
        );
      if (
        url === null ||
        !/^https?:$/.test(url.protocol) ||
        url.username !== "" ||
        url.password !== "" ||
        url.search !== ""
      )
        throw invalid(
          `gateway.upstreams.${name}.baseUrl must be an http or https address without credentials and query.`,
          `gateway.upstreams.${name}.baseUrl`,
        );
      const basePath = url.pathname.replace(/\/$/, "");
      return [name, { name, url, basePath, api, credentials, mode, apiKey, sharedResources }];
    }),
  );
}

export interface JournalPlace {
  readonly folder: string;
  readonly mostBytes: number;
  readonly codec: PayloadCodec | null;
  /** Whether calls wait in the journal while the store is away. */
  readonly keepsFailed: boolean;
}

const defaultSpoolBytes = 1024 ** 3;

/**
 * Returns the place of the journal. Null means that there is none: without a folder, and for `refuse`, because an answer
 * then ends only when the store has its call. @throws {ThroughlineError} CONFIG_INVALID
 */
export function journalOf({
  spoolFolder: folder,
  onStoreDown = folder === undefined ? "pass" : "spool",
  spoolBytes: mostBytes = defaultSpoolBytes,
  spoolCodec,
}: GatewaySettings): JournalPlace | null {
  if (folder === undefined && onStoreDown === "spool")
    throw invalid("gateway.onStoreDown is spool, and there is no folder for it.", "gateway.onStoreDown");
  if (folder === undefined || onStoreDown === "refuse") return null;
  return { folder, mostBytes, codec: spoolCodec ?? null, keepsFailed: onStoreDown === "spool" };
}

function invalid(message: string, key: string): ThroughlineError {
  return new ThroughlineError("CONFIG_INVALID", message, {
    details: { key },
    remedy:
      "Correct this option of the gateway. For `throughline serve`, `throughline config gateway` prints where it is set.",
  });
}
