import { existsSync } from "node:fs";

/** Whether anything has the name. */
export function isThere(path: string): boolean {
  return existsSync(path);
}
