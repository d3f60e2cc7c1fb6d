import { ThroughlineError } from "@throughline/core";

/** Whose API an upstream speaks. */
export type UpstreamApi = "anthropic" | "openai" | "ollama";

/**
 * What is done with a call. `record`: the same bytes go to the provider. `guard`: they do, and where the provider refuses their
 * size or their history, one rebuilt request follows. `stateful`: the session holds the history, and the client sends what is new.
 */
export type GatewayMode = "record" | "guard" | "stateful";

export const gatewayModes: readonly ["record", "guard", "stateful"] = ["record", "guard", "stateful"];

export function isGatewayMode(value: unknown): value is GatewayMode {
  return (gatewayModes as readonly unknown[]).includes(value);
}

/** A provider that requests are passed to. */
export interface UpstreamOptions {
  /**
   * Where it is, without the part of the path that its SDK adds: `https://api.anthropic.com`, `http://127.0.0.1:11434`.
   * @default the provider's own address; Ollama's on this machine
   */
  readonly baseUrl?: string;
  readonly api: UpstreamApi;
  /** `server`: the client sends our token, and the provider gets `apiKey`. `caller`: the client sends its own key. @default "caller" */
  readonly credentials?: "server" | "caller";
  /** What is done with its calls. @default "record" */
  readonly mode?: GatewayMode;
  /** With `server` credentials. @default none is sent */
  readonly apiKey?: string;
  /** With `server` credentials: files, batches and stored responses of the account may be reached by every token. @default false */
  readonly sharedResources?: boolean;
}

/** Providers by name: the first part of the path of their requests. */
export interface GatewayOptions {
  readonly upstreams: Readonly<Record<string, UpstreamOptions>>;
  /**
   * While the store is away: `spool` keeps calls in files and stores them later. `refuse` takes no calls. `pass` passes them
   * on without a record. @default "spool" with a `spoolFolder`, else "pass"
   */
  readonly onStoreDown?: "spool" | "refuse" | "pass";
  /** The folder of these files, which no other process uses. */
  readonly spoolFolder?: string;
  /** All files together may take this. @default 1 GiB */
  readonly spoolBytes?: number;
  /** Variables that name proxies: `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`. Node from 24.5 on uses them. @default no proxy */
  readonly proxyVariables?: Readonly<Record<string, string | undefined>>;
}

/** An upstream as requests use it. */
export interface Upstream {
  readonly name: string;
  readonly url: URL;
  /** Of the URL, without a slash at the end. */
  readonly basePath: string;
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

/** @throws {ThroughlineError} CONFIG_INVALID for a name or an address that cannot be one */
export function upstreamsOf({ upstreams }: GatewayOptions): ReadonlyMap<string, Upstream> {
  return new Map(
    Object.entries(upstreams).map(([name, options]) => {
      const { api, credentials = "caller", mode = "record", apiKey = null, sharedResources = false } = options;
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

const defaultSpoolBytes = 1024 ** 3;

/** Where calls wait for the store; null: nowhere. @throws {ThroughlineError} CONFIG_INVALID */
export function spoolOf({
  spoolFolder: folder,
  onStoreDown = folder === undefined ? "pass" : "spool",
  spoolBytes: mostBytes = defaultSpoolBytes,
}: GatewayOptions): { readonly folder: string; readonly mostBytes: number } | null {
  if (onStoreDown !== "spool") return null;
  if (folder === undefined)
    throw invalid("gateway.onStoreDown is spool, and there is no folder for it.", "gateway.onStoreDown");
  return { folder, mostBytes };
}

function invalid(message: string, key: string): ThroughlineError {
  return new ThroughlineError("CONFIG_INVALID", message, {
    details: { key },
    remedy: "Correct it in the configuration; `throughline config gateway` prints where it is set.",
  });
}
