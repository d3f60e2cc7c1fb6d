import { createHash } from "node:crypto";
import { isSessionId } from "@throughline/core/internal";

export const marksKeyStart = "agent:main:imports:";

export function marksNamespace(namespace: string): string {
  const name = `${namespace === "" ? "throughline" : namespace}.imports`;
  if (isSessionId(name)) return name;
  return `${createHash("sha256").update(namespace).digest("hex").slice(0, 32)}.imports`;
}
