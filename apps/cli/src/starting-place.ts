import { homedir, userInfo } from "node:os";
import { isAbsolute, resolve } from "node:path";
import process from "node:process";
import { ThroughlineError } from "@throughline/core";

/** How the system is asked for the user's directory; each may fail. */
export interface HomeSources {
  /** `HOME` as it stands, which may be empty, else what the user's account says. */
  readonly fromEnvironment: () => string;
  readonly fromAccount: () => string;
}

const systemSources: HomeSources = { fromEnvironment: homedir, fromAccount: () => userInfo().homedir };

function found(read: () => string): string {
  try {
    return read();
  } catch {
    // A user id without an account, as containers are started with: the system knows no directory for it.
    return "";
  }
}

/**
 * The user's directory, absolute: with an empty or relative `HOME` taken as it stands the default store would be another one
 * in every folder. Where the system knows none it is `/`, as container engines set it.
 */
export function findUserHome(workingDirectory: string, sources: HomeSources = systemSources): string {
  const home = found(sources.fromEnvironment) || found(sources.fromAccount) || "/";
  return isAbsolute(home) ? home : resolve(workingDirectory, home);
}

/** The directory the command was started in. Throws FILE_NOT_FOUND when it was removed: every relative path hangs on it. */
export function findWorkingDirectory(): string {
  try {
    return process.cwd();
  } catch (cause) {
    throw new ThroughlineError("FILE_NOT_FOUND", "The directory this was started in is not there any more.", { cause });
  }
}
