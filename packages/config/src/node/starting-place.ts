import { homedir, userInfo } from "node:os";
import { isAbsolute, resolve } from "node:path";
import process from "node:process";
import { ThroughlineError } from "@throughline/core";

/** Each of these lookups may fail, so both are tried. */
export interface HomeSources {
  /** Returns `HOME`, which may be empty, else the directory of the user's account. */
  readonly fromEnvironment: () => string;
  readonly fromAccount: () => string;
}

const systemSources: HomeSources = { fromEnvironment: homedir, fromAccount: () => userInfo().homedir };

function found(read: () => string): string {
  try {
    return read();
  } catch {
    // Containers may run with a user id without an account, for which the system knows no directory.
    return "";
  }
}

/**
 * Returns the user's directory as an absolute path. With an empty or relative `HOME`, the default store would otherwise
 * differ from folder to folder. If the system knows no directory, `/` is used, as container engines set it.
 */
export function findUserHome(workingDirectory: string, sources: HomeSources = systemSources): string {
  const home = found(sources.fromEnvironment) || found(sources.fromAccount) || "/";
  return isAbsolute(home) ? home : resolve(workingDirectory, home);
}

/** Throws FILE_NOT_FOUND if the directory was removed, because every relative path depends on it. */
export function findWorkingDirectory(): string {
  try {
    return process.cwd();
  } catch (cause) {
    throw new ThroughlineError("FILE_NOT_FOUND", "The directory this was started in is not there any more.", { cause });
  }
}
