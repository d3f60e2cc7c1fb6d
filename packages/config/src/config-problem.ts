import { ThroughlineError } from "@throughline/core";
import { nearestName } from "@throughline/core/internal";

/** A place in a configuration file, or the name of a variable or flag. */
export interface ConfigPlace {
  readonly path: string;
  readonly line: number | null;
}

/** The general remedy of the code names a command that reads the same configuration, and fails as this one did. */
export const configRemedy =
  "Correct it where the message says, or take it away; `throughline config` then lists every key with its value and source.";

/** @returns an error that names the place, and in its details what else is known */
export function configProblem(place: ConfigPlace | null, message: string, details: object): ThroughlineError {
  const at = place === null ? "" : `${placeText(place)}: `;
  return new ThroughlineError("CONFIG_INVALID", `${at}${message}`, {
    remedy: configRemedy,
    details: { ...(place === null ? {} : { path: place.path, line: place.line }), ...details },
  });
}

export function placeText({ path, line }: ConfigPlace): string {
  return line === null ? path : `${path}:${line}`;
}

/** A field that no block of this kind has. */
export function unknownField(
  place: ConfigPlace | null,
  name: string | null,
  { key, known }: { readonly key: string; readonly known: readonly string[] },
): ThroughlineError {
  const nearest = nearestName(key.slice(key.lastIndexOf(".") + 1), known);
  const hint = nearest === null ? `the keys there are ${known.join(", ")}.` : `did you mean ${nearest}?`;
  const of = name === null ? "" : `${name}: `;
  const named = name === null ? {} : { name };
  return configProblem(place, `${of}${shown(key)} is not a setting; ${hint}`, { key, nearest, ...named });
}

/** A value for a message, on one line and no longer than is good to read. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}
