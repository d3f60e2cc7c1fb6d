import { join } from "node:path";
import type { SettingValue } from "@throughline/core/internal";
import type { GatewayMode, GatewayOptions, UpstreamApi, UpstreamOptions } from "@throughline/server";
import { usageError } from "../error-report.ts";

interface UpstreamSetting {
  readonly api: UpstreamApi;
  readonly baseUrl?: string;
  readonly credentials?: "server" | "caller";
  readonly mode?: GatewayMode;
  readonly apiKeyEnv?: string;
  readonly sharedResources?: boolean;
}

/** Adds the API keys from the environment variables; null without upstreams. */
export function gatewayOptions(
  valueOf: (key: string) => SettingValue,
  environment: Readonly<Record<string, string | undefined>>,
  home: string,
): GatewayOptions | null {
  // The configuration is validated, so each entry has the shape of its setting.
  const setting = valueOf("gateway.upstreams") as unknown as Readonly<Record<string, UpstreamSetting>>;
  const upstreams = Object.entries(setting);
  if (upstreams.length === 0) return null;
  // This variable also enables proxies for Node's own requests, including those of the summary models.
  const proxies = environment["NODE_USE_ENV_PROXY"] === "1" ? { proxyVariables: environment } : {};
  return {
    ...proxies,
    upstreams: Object.fromEntries(upstreams.map(([name, one]) => [name, upstreamOf(name, one, environment)])),
    onStoreDown: valueOf("gateway.onStoreDown") as NonNullable<GatewayOptions["onStoreDown"]>,
    spoolFolder: join(home, "spool"),
    spoolBytes: Number(valueOf("gateway.spoolBytes")),
  };
}

function upstreamOf(
  name: string,
  { apiKeyEnv, credentials = apiKeyEnv === undefined ? "caller" : "server", ...rest }: UpstreamSetting,
  environment: Readonly<Record<string, string | undefined>>,
): UpstreamOptions {
  if (apiKeyEnv === undefined) return { ...rest, credentials };
  const key = `gateway.upstreams.${name}.apiKeyEnv`;
  if (credentials === "caller")
    throw usageError(`${key} is set, and the credentials of ${name} are the caller's: leave one of them out.`, { key });
  const apiKey = environment[apiKeyEnv];
  if (apiKey === undefined || apiKey === "")
    throw usageError(`The variable ${apiKeyEnv}, which ${key} names, is not set.`, { key, variable: apiKeyEnv });
  // A line break in the key would inject another header.
  if (!/^[\x21-\x7e]+$/.test(apiKey))
    throw usageError(`The variable ${apiKeyEnv} holds no key.`, { key, variable: apiKeyEnv });
  return { ...rest, credentials, apiKey };
}

/** The provider's SDK reads its base URL from this variable. */
export function baseUrlVariable(api: UpstreamApi, name: string, url: string): string {
  switch (api) {
    case "anthropic":
      return `ANTHROPIC_BASE_URL=${url}/${name}`;
    case "openai":
      return `OPENAI_BASE_URL=${url}/${name}/v1`;
    case "ollama":
      return `OLLAMA_HOST=${url}/${name}`;
  }
}
