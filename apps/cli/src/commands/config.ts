import { explainSettings } from "@throughline/config";
import { maskDeep, maskSecrets, placeText } from "@throughline/config/internal";
import type { Config } from "@throughline/config";
import type { ConfigNote } from "@throughline/config/internal";
import { nearestName, quote } from "@throughline/core/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";

/** An invalid configuration has been refused before this runs. */
export async function run({ output, config }: CommandContext, input: CommandInput): Promise<number> {
  const isCheck = input.options["check"] === true;
  const shown = chosen(explainSettings(config), input.arguments[0]);
  if (output.isJson) {
    for (const { key, value, source, from, given, default: fallback } of shown) {
      const notes = notesOf(config, key).map(noteText);
      const masked = { value: maskDeep(value), default: maskDeep(fallback), given: maskDeep(given) };
      await output.object({
        kind: "setting",
        key,
        value: masked.value,
        source,
        default: masked.default,
        from,
        given: masked.given,
        notes,
      });
    }
    await output.end(shown.length);
    return 0;
  }
  for (const note of config.notes) output.note(maskSecrets(noteText(note)));
  if (isCheck) {
    await output.line(`configuration: ${shown.length} settings, no problem`);
    return 0;
  }
  await output.table(
    [{ title: "KEY" }, { title: "VALUE" }, { title: "SOURCE" }],
    shown.map(({ key, value, from }) => [key, textOf(maskDeep(value)), from]),
  );
  return 0;
}

/** Prefers an exact name; otherwise all settings with this prefix. */
function chosen<Setting extends { readonly key: string }>(
  settings: readonly Setting[],
  name: string | undefined,
): readonly Setting[] {
  if (name === undefined) return settings;
  const exact = settings.filter(({ key }) => key === name);
  const found = exact.length > 0 ? exact : settings.filter(({ key }) => key.startsWith(name));
  if (found.length > 0) return found;
  const nearest = nearestName(
    name,
    settings.map(({ key }) => key),
  );
  const hint = nearest === null ? "" : ` Did you mean ${nearest}?`;
  throw usageError(`${quote(name)} is not a setting.${hint}`, { name: name.slice(0, 200), nearest });
}

/** A note about an alias appears with the setting that it stands for. */
function notesOf({ notes }: Config, key: string): readonly ConfigNote[] {
  return notes.filter((note) => note.key === key || note.meant === key);
}

function noteText({ message, path, line }: ConfigNote): string {
  return path === null ? message : `${placeText({ path, line })}: ${message}`;
}

/** Long values such as prompts are cut, because a table row is one line. */
function textOf(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  return text.length > 100 ? `${text.slice(0, 99).toWellFormed()}…` : text;
}
