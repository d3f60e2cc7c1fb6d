import { ThroughlineError } from "@throughline/core";
import { nearestName } from "@throughline/core/internal";

/** The path names a configuration file. For an environment variable or a flag it is the name, and the line is null. */
export interface ConfigPlace {
  readonly path: string;
  readonly line: number | null;
}

/**
 * The general remedy of the error code names a command that reads the same configuration, so that command would fail
 * too.
 */
export const configRemedy =
  "Correct it where the message says, or take it away; `throughline config` then lists every key with its value and source.";

export function configProblem(
  place: ConfigPlace | null,
  message: string,
  details: object,
  remedy: string = configRemedy,
): ThroughlineError {
  const at = place === null ? "" : `${placeText(place)}: `;
  return new ThroughlineError("CONFIG_INVALID", `${at}${message}`, {
    remedy,
    details: { ...(place === null ? {} : { path: place.path, line: place.line }), ...details },
  });
}

export function placeText({ path, line }: ConfigPlace): string {
  return line === null ? path : `${path}:${line}`;
}

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

/** A message must fit on one line, so a value is cut at 120 characters. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 120 ? `${text.slice(0, 117)}...` : text;
}
