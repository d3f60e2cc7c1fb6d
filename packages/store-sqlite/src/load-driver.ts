import { createRequire } from "node:module";
import process from "node:process";
import { ThroughlineError } from "@throughline/core";
import type Database from "better-sqlite3";

/** Resolves modules from this file, in an ES module and in a CommonJS bundle. */
function fromHere(): NodeJS.Require {
  const here: unknown = import.meta.url;
  return createRequire(typeof here === "string" ? here : __filename);
}

/** Returns the path of the driver. A thread that runs text cannot resolve it by itself. */
export function driverPath(): string {
  return fromHere().resolve("better-sqlite3");
}

let loaded: typeof Database | null = null;

/**
 * Returns the driver, which is loaded with the first database. A program whose native module is missing can then report
 * that in one sentence.
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

/**
 * Translates the error of loading the native module, which comes with the first database. Other errors stay as they
 * are.
 */
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
