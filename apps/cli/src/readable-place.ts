import { accessSync, constants, statSync } from "node:fs";
import { dirname } from "node:path";
import process from "node:process";
import { ThroughlineError } from "@throughline/core";
import { shellWord } from "@throughline/core/keys";

const absent: ReadonlySet<unknown> = new Set(["ENOENT", "ENOTDIR"]);
const denied: ReadonlySet<unknown> = new Set(["EACCES", "EPERM"]);

/**
 * Whether something lies at an absolute path. What this user may not look at counts as there: taking it for absent would
 * begin an empty store beside a full one.
 * @throws {ThroughlineError} FILE_UNREADABLE
 */
export function isThere(path: string): boolean {
  try {
    statSync(path);
    return true;
  } catch (error) {
    if (absent.has((error as { code?: unknown }).code)) return false;
    throw unreadable(path, error);
  }
}

export function isFolder(path: string): boolean {
  return isThere(path) && statSync(path).isDirectory();
}

/** Does nothing when nothing is there. @throws {ThroughlineError} FILE_UNREADABLE when this user may not read it */
export function assertReadable(path: string): void {
  if (!isThere(path)) return;
  try {
    accessSync(path, statSync(path).isDirectory() ? constants.R_OK | constants.X_OK : constants.R_OK);
  } catch (error) {
    throw unreadable(path, error);
  }
}

function unreadable(path: string, cause: unknown): unknown {
  // A name that is too long, or a link that leads to itself, says so by itself.
  if (!denied.has((cause as { code?: unknown }).code)) return cause;
  const [barrier, facts] = barrierOf(path);
  const user = process.getuid?.();
  const isOwn = facts !== undefined && facts.uid === user;
  const owner =
    facts === undefined || isOwn ? "" : ` It belongs to user ${facts.uid}, and this command runs as user ${user}.`;
  const what = barrier === path ? "" : ` Its folder ${JSON.stringify(barrier)} is closed to this user.`;
  const remedy = isOwn
    ? `Open it for yourself: \`chmod u+rw${facts.isDirectory() ? "x" : ""} ${shellWord(barrier)}\``
    : "Run the command as that user, or change the permissions as that user";
  return new ThroughlineError("FILE_UNREADABLE", `${JSON.stringify(path)} cannot be read.${what}${owner}`, {
    cause,
    details: { path, barrier },
    remedy: `${remedy}. Or use another place: --home DIR or --store URL.`,
  });
}

/** The first folder on the way that this user may not pass, else the path itself, with what the system says of it. */
function barrierOf(path: string): readonly [string, ReturnType<typeof factsOf>] {
  const parents: string[] = [];
  for (let at = dirname(path); !parents.includes(at); at = dirname(at)) parents.unshift(at);
  for (const parent of parents) {
    try {
      accessSync(parent, constants.X_OK);
    } catch {
      return [parent, factsOf(parent)];
    }
  }
  return [path, factsOf(path)];
}

function factsOf(path: string): { readonly uid: number; isDirectory(): boolean } | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}
