import { chmodSync, lstatSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { maskSecrets, mostFileBytes, readBoundedFile } from "@throughline/config/internal";
import { ThroughlineError } from "@throughline/core";
import { shellWord } from "@throughline/core/internal";
import { serverFilePath } from "./server-file.ts";

interface Home {
  readonly path: string;
  /** The configuration file that is in force. */
  readonly configPath: string;
  /** The file with a token that the settings name; null: none. */
  readonly tokenPath: string | null;
}

/**
 * Makes the home a folder of this user alone: others could read the token in it, or put another in its place. True when it
 * had to be closed. A home that was open while it held a secret is refused, because others may know the secret by now.
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

/** The name of a file in the home that holds a secret; null: there is none. */
function secretIn({ path, configPath, tokenPath }: Home, names: readonly string[]): string | null {
  const server = serverFilePath(path);
  for (const name of names) {
    const file = join(path, name);
    if (file === server || file === tokenPath) return name;
    if (file === configPath && dirname(configPath) === path && holdsSecret(file)) return name;
  }
  return null;
}

/** A field of the configuration that is a secret itself; `maskSecrets` finds URLs with a password. */
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
