import { createHash } from "node:crypto";
import { quoted, WorkspaceToolRefusal } from "./tool-refusal.ts";
import type { OpenedFile } from "./workspace-folder.ts";

export function bytesSha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Reads the file piece by piece, because a file that is replaced may be of any size. */
export async function fileSha256(handle: OpenedFile["handle"]): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of handle.createReadStream({ autoClose: false, start: 0 })) hash.update(piece as Uint8Array);
  return hash.digest("hex");
}

/**
 * A person approved the change of certain bytes. The change of other bytes is another change.
 *
 * @param actual null where no file is
 * @param expected undefined for any bytes
 * @throws {WorkspaceToolRefusal} when the bytes differ
 */
export function assertApproved(path: string, actual: string | null, expected: string | null | undefined): void {
  if (expected === undefined || actual === expected) return;
  throw new WorkspaceToolRefusal(
    "changed",
    `${quoted(path)} changed after the call was approved; nothing was written. Read it again.`,
  );
}
