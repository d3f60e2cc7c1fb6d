import { ThroughlineError } from "@throughline/core";
import { z } from "zod";
import { nearestKey } from "./nearest-key.ts";
import { describeKind } from "./setting-definition.ts";
import type { SettingDefinition, SettingKind, SettingScalar } from "./setting-definition.ts";

/** A configuration file that was found. */
export interface ConfigFile {
  readonly path: string;
  readonly text: string;
}

/**
 * The values of a configuration file. This is the only module of the package that loads the schema library, so that a
 * command without a configuration file starts without it.
 * @throws {ThroughlineError} CONFIG_INVALID naming the file, the key, the value and what is allowed
 */
export function readConfigFile(
  file: ConfigFile,
  definitions: readonly SettingDefinition[],
): ReadonlyMap<string, SettingScalar> {
  const value = parseJson(file);
  const allowed = definitions.filter((definition) => definition.isFileAllowed);
  if (!z.looseObject({}).safeParse(value).success) throw invalid(file, "The configuration is not a JSON object.", {});
  const values = new Map<string, SettingScalar>();
  // The parsed JSON itself, not the schema's copy: that one leaves out "__proto__" without a word.
  for (const [key, given] of Object.entries(value as Readonly<Record<string, unknown>>)) {
    const definition = allowed.find((candidate) => candidate.key === key);
    if (definition === undefined) throw unknownKey(file, key, definitions);
    values.set(key, readValue(file, definition, given));
  }
  return values;
}

/** The schema of one setting. */
function schemaOf(kind: SettingKind): z.ZodType<SettingScalar> {
  switch (kind.type) {
    case "text":
      return z.string().min(kind.minLength);
    case "choice":
      return z.enum(kind.choices as [string, ...string[]]);
    case "boolean":
      return z.boolean();
    case "integer":
      return z.int().min(kind.min).max(kind.max);
  }
}

function readValue(file: ConfigFile, definition: SettingDefinition, given: unknown): SettingScalar {
  const parsed = schemaOf(definition.kind).safeParse(given);
  if (parsed.success) return parsed.data;
  const allowed = describeKind(definition.kind);
  const value = definition.isSecret === true ? "***" : given;
  throw invalid(file, `${definition.key} is ${JSON.stringify(value)}; it must be ${allowed}.`, {
    key: definition.key,
    value,
    allowed,
  });
}

function unknownKey(file: ConfigFile, key: string, definitions: readonly SettingDefinition[]): ThroughlineError {
  const outside = definitions.find((definition) => definition.key === key);
  if (outside !== undefined) {
    const ways = [outside.flag, ...outside.environment.map((variable) => variable.name)].filter((way) => way !== null);
    return invalid(file, `${key} cannot be set in the file; use ${ways.join(" or ")}.`, { key });
  }
  const known = definitions.filter((definition) => definition.isFileAllowed).map((definition) => definition.key);
  const nearest = nearestKey(key, known);
  const hint = nearest === null ? `the keys are ${known.join(", ")}` : `did you mean ${nearest}?`;
  return invalid(file, `${JSON.stringify(key)} is not a setting; ${hint}.`.replace("?.", "?"), { key, nearest });
}

function parseJson(file: ConfigFile): unknown {
  try {
    return JSON.parse(file.text.replace(/^\uFEFF/, ""));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw invalid(file, `The configuration is not JSON: ${why}.`, {}, cause);
  }
}

function invalid(file: ConfigFile, message: string, details: object, cause?: unknown): ThroughlineError {
  return new ThroughlineError("CONFIG_INVALID", `${file.path}: ${message}`, {
    details: { path: file.path, ...details },
    cause,
  });
}
