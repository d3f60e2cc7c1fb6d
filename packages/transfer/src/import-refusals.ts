import { ThroughlineError } from "@throughline/core";
import { quote, shellWord } from "@throughline/core/internal";

interface ImportPlace {
  readonly path: string;
  readonly key: string;
}

/** Reports that the imported part of the file has changed. */
export function sourceChanged({ path, key }: ImportPlace, importedBytes: number, why: string): ThroughlineError {
  return new ThroughlineError("SOURCE_CHANGED", `${quote(path)} was imported before, and ${why}.`, {
    outcome: "not-applied",
    remedy: `What was imported stays. ${anotherKey(path)}.`,
    details: { path, key, importedBytes },
  });
}

/**
 * Reports that the file no longer begins with the imported bytes. A shorter file gets another remedy: a new key would
 * hold less than the session already has.
 */
export function sourceReplaced(place: ImportPlace, importedBytes: number, sizeBytes: number): ThroughlineError {
  const { path, key } = place;
  if (sizeBytes >= importedBytes)
    return sourceChanged(place, importedBytes, `its first ${importedBytes} bytes are others now (it has ${sizeBytes})`);
  const message = `${quote(path)} has ${sizeBytes} bytes now; ${importedBytes} bytes of it were imported before.`;
  return new ThroughlineError("SOURCE_CHANGED", message, {
    outcome: "not-applied",
    remedy: `The session keeps all that was imported. \`throughline export ${shellWord(key)} -o ${shellWord(`${path}.imported`)}\` writes it to a new file.`,
    details: { path, key, importedBytes, sizeBytes },
  });
}

/** A session with records of its own cannot take more of its source, because both would need the same position. */
export function wentItsOwnWay({ path, key }: ImportPlace): ThroughlineError {
  const message = `${quote(key)} has records of its own by now: what ${quote(path)} has gained cannot come behind them.`;
  return new ThroughlineError("APPEND_CONFLICT", message, {
    outcome: "not-applied",
    remedy: `${anotherKey(path)}; this one stays as it is.`,
    details: { path, key },
  });
}

/** An archived session takes no records, and an import must not reactivate a session that a user ended. */
export function isPutAside({ path, key }: ImportPlace): ThroughlineError {
  const message = `The session of ${quote(path)} is archived here, ${quote(key)}, and its source has gone on.`;
  return new ThroughlineError("SESSION_ARCHIVED", message, {
    outcome: "not-applied",
    remedy: `Restore it and import again. Or: ${anotherKey(path)}.`,
    details: { path, key },
  });
}

function anotherKey(path: string): string {
  return `Import the source under another key to have all of it in a session beside this one: \`throughline import ${shellWord(path)} --key KEY\``;
}

/** Reports that a concurrent import of the file already continued from the same receipt. */
export function importOvertaken({ path, key }: ImportPlace, cause?: unknown): ThroughlineError {
  return new ThroughlineError("APPEND_CONFLICT", `Another import of ${quote(path)} was faster.`, {
    outcome: "not-applied",
    remedy: "Import again: it goes on from there.",
    details: { path, key },
    ...(cause === undefined ? {} : { cause }),
  });
}
