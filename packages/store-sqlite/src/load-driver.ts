import { createRequire } from "node:module";
import process from "node:process";
import { ThroughlineError } from "@throughline/core";
import type Database from "better-sqlite3";

/** Looks modules up from this file, in an ES module and in a bundle of the older format. */
function fromHere(): NodeJS.Require {
  const here: unknown = import.meta.url;
  return createRequire(typeof here === "string" ? here : __filename);
}

/** Where the driver's files are. A thread of text does not know by itself. */
export function driverPath(): string {
  return fromHere().resolve("better-sqlite3");
}

let loaded: typeof Database | null = null;

/**
 * The driver, loaded when the first database is opened: a program whose native module is missing can say so in a sentence.
 * @throws {ThroughlineError} INSTALLATION_DAMAGED
 */
export function loadDriver(): typeof Database {
  loaded ??= loadedNow();
  return loaded;
}

function loadedNow(): typeof Database {
  try {
    return fromHere()("better-sqlite3") as typeof Database;
  } catch (cause) {
    throw damaged(cause, "It is not installed, or not as a whole.");
  }
}

/** What the driver throws when it loads its native module with the first database; every other error as it is. */
export function driverError(error: unknown): unknown {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  if (code === "MODULE_NOT_FOUND") return damaged(error, "Its native module is missing.");
  return code === "ERR_DLOPEN_FAILED"
    ? damaged(error, "Its native module is damaged or made for another system.")
    : error;
}

function damaged(cause: unknown, why: string): ThroughlineError {
  const { platform, arch, version } = process;
  return new ThroughlineError("INSTALLATION_DAMAGED", `better-sqlite3 cannot be loaded. ${why}`, {
    outcome: "not-applied",
    details: { package: "better-sqlite3", platform, arch, version },
    remedy: "Install it again where your program is: npm install better-sqlite3.",
    cause,
  });
}
