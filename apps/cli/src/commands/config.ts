import { explainSettings } from "@throughline/config";
import { maskDeep, maskSecrets, placeText } from "@throughline/config/internal";
import type { Config } from "@throughline/config";
import type { ConfigNote } from "@throughline/config/internal";
import type { CommandContext, CommandInput } from "../command.ts";

/** Prints every setting with what set it. Whatever is wrong was refused before this runs. */
export async function run({ output, config }: CommandContext, input: CommandInput): Promise<number> {
  const isCheck = input.options["check"] === true;
  const shown = explainSettings(config);
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

/** A note about another name for a setting is shown with that setting. */
function notesOf({ notes }: Config, key: string): readonly ConfigNote[] {
  return notes.filter((note) => note.key === key || note.meant === key);
}

function noteText({ message, path, line }: ConfigNote): string {
  return path === null ? message : `${placeText({ path, line })}: ${message}`;
}

/** Long values, as prompts, are cut: a table has one line for each. */
function textOf(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  return text.length > 100 ? `${text.slice(0, 99).toWellFormed()}…` : text;
}
