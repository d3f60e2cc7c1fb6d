import { join } from "node:path";
import { isDatabaseFile } from "../node/foreign-database.ts";
import { isFile, isInside, isSamePath } from "../node/source-files.ts";

/**
 * True if a path belongs to a JSON Lines store: its root, or a folder or transcript in `agents` or `namespaces`. A
 * database there belongs to OpenClaw, and folders beside these two do not belong to the store.
 * @throws {ThroughlineError} FILE_NOT_FOUND, FILE_UNREADABLE
 */
export async function isOwnPlace(path: string, storeRoot: string): Promise<boolean> {
  if (await isSamePath(path, storeRoot)) return true;
  const own = await Promise.all(["agents", "namespaces"].map((name) => isInside(path, join(storeRoot, name))));
  return own.includes(true) && !((await isFile(path)) && (await isDatabaseFile(path)));
}
