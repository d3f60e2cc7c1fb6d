import { chmodSync, lstatSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { maskSecrets, mostFileBytes, readBoundedFile } from "@throughline/config/internal";
import { ThroughlineError } from "@throughline/core";
import { shellWord } from "@throughline/core/internal";
import { serverFilePath } from "./server-file.ts";

interface Home {
  readonly path: string;
  readonly configPath: string;
  readonly tokenPath: string | null;
}

/**
 * Restricts the home to this user, because other users could read or replace the token in it. Returns true if the mode
 * changed. A home that was open while it held a secret is refused, because other users may know the secret.
 * @throws {ThroughlineError} PATH_UNSAFE
 */
export function closeHome(home: Home): boolean {
  const { path } = home;
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const user = process.getuid?.();
  if (user === undefined || (statSync(path).mode & 0o077) === 0) return false;
  const names = readdirSync(path);
  const secret = secretIn(home, names);
  if (secret !== null) throw unsafe(path, `is open to other users, and ${secret} in it holds a secret`);
  const foreign = names.find((name) => lstatSync(join(path, name)).uid !== user);
  if (foreign !== undefined)
    throw unsafe(path, `is open to other users, and ${foreign} in it is a file of another user`);
  try {
    chmodSync(path, 0o700);
  } catch (cause) {
    throw unsafe(path, "is open to other users, and this user may not close it", cause);
  }
  return true;
}

/** Returns the name of the first file in the home that holds a secret; null if there is none. */
function secretIn({ path, configPath, tokenPath }: Home, names: readonly string[]): string | null {
  const server = serverFilePath(path);
  for (const name of names) {
    const file = join(path, name);
    if (file === server || file === tokenPath) return name;
    if (file === configPath && dirname(configPath) === path && holdsSecret(file)) return name;
  }
  return null;
}

/** Matches secret fields of the configuration; `maskSecrets` finds URLs with a password. */
const secretField = /"(?:cursorKey|apiKey|password|secret|token)" ?: ?"[^"]/i;

function holdsSecret(configPath: string): boolean {
  const text = readBoundedFile(configPath, { what: "configuration", mostBytes: mostFileBytes });
  return maskSecrets(text) !== text || secretField.test(text);
}

function unsafe(path: string, why: string, cause?: unknown): ThroughlineError {
  return new ThroughlineError("PATH_UNSAFE", `The home ${JSON.stringify(path)} ${why}.`, {
    outcome: "not-applied",
    details: { path },
    remedy: `Close it: chmod 700 ${shellWord(path)}.`,
    ...(cause === undefined ? {} : { cause }),
  });
}
