import type { EarlierSession } from "@throughline/core/internal";

export function earlierHeading({ sessionId, state }: EarlierSession): string {
  return `Earlier session ${sessionId}${state === null ? ": it is not under this key any more" : ", before a reset"}`;
}

export function currentHeading(sessionId: string): string {
  return `Session ${sessionId}`;
}
