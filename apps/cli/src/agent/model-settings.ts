import type { ModelChoice } from "../chat/choose-model.ts";
import type { CommandContext } from "../command.ts";

export function modelSettings({
  host,
  settings,
}: CommandContext): Pick<ModelChoice, "wanted" | "baseUrl" | "apiKey" | "environment"> {
  const textOf = (key: string): string | null =>
    (settings.find((setting) => setting.key === key)?.value ?? null) as string | null;
  const wanted = settings.find(({ key, value }) => key === "model" && value !== null);
  return {
    wanted: wanted === undefined ? null : { name: String(wanted.value), source: wanted.sourceName ?? wanted.source },
    baseUrl: textOf("modelBaseUrl"),
    apiKey: textOf("modelApiKey"),
    environment: host.environment,
  };
}
