/** Whose API an upstream speaks. */
export type UpstreamApi = "anthropic" | "openai" | "ollama";

/** A provider that requests are passed to. */
export interface UpstreamOptions {
  /** Where it is, without the part of the path that its SDK adds: `https://api.anthropic.com`, `http://127.0.0.1:11434`. */
  readonly baseUrl: string;
  readonly api: UpstreamApi;
  /** `server`: the client sends our token, and the provider gets `apiKey`. `caller`: the client sends its own key. @default "caller" */
  readonly credentials?: "server" | "caller";
  /** With `server` credentials. @default none is sent */
  readonly apiKey?: string;
  /** With `server` credentials: files, batches and stored responses of the account may be reached by every token. @default false */
  readonly sharedResources?: boolean;
}

/** Providers by name: the first part of the path of their requests. */
export interface GatewayOptions {
  readonly upstreams: Readonly<Record<string, UpstreamOptions>>;
}

/** An upstream as requests use it. */
export interface Upstream {
  readonly name: string;
  readonly url: URL;
  /** Of the URL, without a slash at the end. */
  readonly basePath: string;
  readonly api: UpstreamApi;
  readonly credentials: "server" | "caller";
  readonly apiKey: string | null;
  readonly sharedResources: boolean;
}

const nameForm = /^[a-z0-9][a-z0-9-]{0,31}$/;
const takenNames: ReadonlySet<string> = new Set(["api", "inspect", "metrics", "healthz", "readyz"]);

/** @throws {RangeError} for a name or an address that cannot be one */
export function upstreamsOf({ upstreams }: GatewayOptions): ReadonlyMap<string, Upstream> {
  return new Map(
    Object.entries(upstreams).map(([name, options]) => {
      const url = URL.parse(options.baseUrl);
      if (!nameForm.test(name) || takenNames.has(name))
        throw new RangeError(`An upstream cannot be called ${JSON.stringify(name)}.`);
      if (
        url === null ||
        !/^https?:$/.test(url.protocol) ||
        url.username !== "" ||
        url.password !== "" ||
        url.search !== ""
      )
        throw new RangeError(`The baseUrl of upstream ${name} must be an http or https address without credentials.`);
      const { api, credentials = "caller", apiKey = null, sharedResources = false } = options;
      const basePath = url.pathname.replace(/\/$/, "");
      return [name, { name, url, basePath, api, credentials, apiKey, sharedResources }];
    }),
  );
}
