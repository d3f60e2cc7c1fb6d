import type { AgentToolResult } from "@throughline/core";

/** States why a tool refused a call. The message is written for the model and becomes the answer to the call. */
export class WorkspaceToolRefusal extends Error {
  /** Names the reason for programs, which must not parse the message. */
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "WorkspaceToolRefusal";
    this.reason = reason;
  }
}

export type RefusalReason =
  | "arguments"
  | "binary"
  | "changed"
  | "denied"
  | "exists"
  | "full"
  | "missing"
  | "not-a-file"
  | "not-a-folder"
  | "outside"
  | "permission"
  | "too-large"
  | "unreadable";

export function refusedResult({ message, reason }: WorkspaceToolRefusal): AgentToolResult {
  return { content: message, isError: true, details: { reason } };
}

const words: Readonly<Record<string, readonly [RefusalReason, string]>> = {
  ENOENT: ["missing", "does not exist"],
  ENOTDIR: ["not-a-folder", "has a file where a folder should be"],
  EISDIR: ["not-a-file", "is a folder"],
  EACCES: ["permission", "is not accessible: permission denied"],
  EPERM: ["permission", "may not be changed: operation not permitted"],
  EROFS: ["permission", "is on a file system that is read-only"],
  ENAMETOOLONG: ["arguments", "has a name that is too long"],
  ELOOP: ["outside", "leads through a symbolic link that may not be followed"],
  ENOSPC: ["full", "could not be written: the disk is full"],
  EDQUOT: ["full", "could not be written: the quota is used up"],
  ENXIO: ["not-a-file", "is no regular file"],
  EEXIST: ["exists", "exists already"],
};

/**
 * Converts a system error to a refusal that names the path as the model wrote it. The system's own message could reveal
 * paths outside of the workspace. Any other value is returned unchanged.
 */
export function refusalOf(error: unknown, path: string): unknown {
  if (error instanceof WorkspaceToolRefusal || !(error instanceof Error)) return error;
  const { code } = error as { readonly code?: unknown };
  const known = typeof code === "string" ? words[code] : undefined;
  if (known !== undefined) return new WorkspaceToolRefusal(known[0], `${quoted(path)} ${known[1]}.`, error);
  return typeof code === "string" && /^E[A-Z0-9]+$/.test(code)
    ? new WorkspaceToolRefusal("unreadable", `${quoted(path)} could not be used (${code}).`, error)
    : error;
}

/** Quotes a path, so that it cannot pose as part of the message around it. */
export function quoted(path: string): string {
  return JSON.stringify(path.toWellFormed());
}
