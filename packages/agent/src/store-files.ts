import { configProblem, expandStoreUrl, settingOf } from "@throughline/config/internal";
import { parseStoreUrl } from "@throughline/config";
import type { S3FileStoreOptions } from "@throughline/file-store";
import type { AgentContext } from "./agent-context.ts";

/**
 * Returns what finds the bucket of a store by its URL; null for a store whose files are in it. The keys are read at the
 * first request, so that commands which touch no file need none.
 */
export function storeFilesFor(
  context: Pick<AgentContext, "config" | "environment" | "workingDirectory" | "userHome">,
): (url: string) => S3FileStoreOptions | null {
  const { config, workingDirectory, userHome } = context;
  const valueOf = <Value>(key: string): Value => settingOf(config.settings, `files.${key}`) as Value;
  const addressOf = (url: string): string =>
    JSON.stringify(parseStoreUrl(expandStoreUrl(url, userHome), workingDirectory));
  return (url) => {
    const [bucket, store] = [valueOf<string | null>("bucket"), valueOf<string | null>("store")];
    if (bucket === null || store === null || addressOf(store) !== addressOf(url)) return null;
    return {
      bucket,
      region: valueOf("region"),
      endpoint: valueOf<string | null>("endpoint") ?? undefined,
      pathStyle: valueOf<boolean | null>("pathStyle") ?? undefined,
      prefix: valueOf("prefix"),
      credentials: () => ({
        accessKeyId: keyOf(context, "accessKeyIdEnv"),
        secretAccessKey: keyOf(context, "secretAccessKeyEnv"),
        sessionToken: context.environment[valueOf<string>("sessionTokenEnv")]?.trim() || undefined,
      }),
    };
  };
}

/** @throws {ThroughlineError} CONFIG_INVALID */
function keyOf(
  { config, environment }: Pick<AgentContext, "config" | "environment">,
  setting: "accessKeyIdEnv" | "secretAccessKeyEnv",
): string {
  const key = `files.${setting}`;
  const variable = String(settingOf(config.settings, key));
  const value = environment[variable]?.trim() ?? "";
  if (value !== "") return value;
  const message = `files.bucket is set, and the variable ${variable}, which ${key} names, is not.`;
  throw configProblem(null, message, { key, variable }, `Set ${variable}, or name another variable in ${key}.`);
}
