import { existsSync } from "node:fs";

export function isThere(path: string): boolean {
  return existsSync(path);
}
