import type { CommandContext, CommandInput } from "../command.ts";
import { maskSecrets } from "../store-url.ts";
import type { SettingScalar } from "@throughline/config";

/** Prints every setting with what set it. Whatever is wrong was refused before this runs. */
export async function run({ output, settings }: CommandContext, input: CommandInput): Promise<number> {
  const isCheck = input.options["check"] === true;
  const shown = settings.map(({ key, value, source, sourceName, default: fallback, isSecret }) => ({
    key,
    value: isSecret && value !== null ? "***" : masked(value),
    source,
    sourceName,
    default: masked(fallback),
  }));
  if (output.isJson) {
    for (const { key, value, source, default: fallback } of shown) {
      await output.object({ kind: "setting", key, value, source, default: fallback });
    }
    await output.end(shown.length);
    return 0;
  }
  if (isCheck) {
    await output.line(`configuration: ${shown.length} settings, no problem`);
    return 0;
  }
  await output.table(
    [{ title: "KEY" }, { title: "VALUE" }, { title: "SOURCE" }],
    shown.map(({ key, value, source, sourceName }) => [
      key,
      String(value),
      sourceName === null ? source : `${source} ${sourceName}`,
    ]),
  );
  return 0;
}

function masked(value: SettingScalar): SettingScalar {
  return typeof value === "string" ? maskSecrets(value) : value;
}
