import type { AppendResult } from "@throughline/core";
import { defaultIdempotency, refused } from "@throughline/core/internal";
import { chain, type Awaitable } from "./awaitable.ts";
import type { FieldWrites, SessionRow } from "./store-backend.ts";

type FieldWrite = FieldWrites[number];

/** Numbers an append by the order of the session's keyed appends, so that the oldest is forgotten first. */
type Appends = SessionRow["appends"];

/** An append that is remembered forgets at most this many, so that no append pays for all of them. */
const mostForgotten = 2;

/** A digest is a SHA-256 in hex. */
const digestLength = 64;

/** Returns the name of the field that holds a keyed append. */
export function appendField(key: string): string {
  return `append:${key}`;
}

function numberField(number: number): string {
  return `append-number:${number}`;
}

/** Reads the value of a field of `appendField`: the digest of the drafts, and the result as JSON behind it. */
export function keptAppend(text: string | null): { readonly digest: string; readonly result: string } | null {
  return text === null ? null : { digest: text.slice(0, digestLength), result: text.slice(digestLength) };
}

/** A keyed append as a session remembers it, with the fields to write. */
interface RememberedPlan {
  readonly appends: Appends;
  readonly fields: readonly FieldWrite[];
}

/** Plans what a session remembers: the new append, and which of the oldest are forgotten. */
export function planRemembered(
  appends: Appends,
  { key, digest, result }: { readonly key: string; readonly digest: string; readonly result: AppendResult },
  nowMs: number,
  read: (names: readonly string[]) => Awaitable<readonly (string | null)[]>,
): Awaitable<RememberedPlan> {
  const { first, next } = appends;
  const fields: readonly FieldWrite[] = [
    [appendField(key), digest + JSON.stringify(result)],
    [numberField(next), `${nowMs} ${key}`],
  ];
  const remembered = { appends: { ...appends, next: next + 1 }, fields };
  const surplus = Math.min(next + 1 - first - defaultIdempotency.rememberedAppends, mostForgotten);
  if (surplus <= 0) return remembered;
  const oldest = Array.from({ length: surplus }, (_, index) => numberField(first + index));
  return chain(read(oldest), (texts) => forgotten(remembered, texts, nowMs - defaultIdempotency.rememberedMs));
}

function forgotten(
  { appends, fields }: RememberedPlan,
  oldest: readonly (string | null)[],
  beforeMs: number,
): RememberedPlan {
  let { first, horizonMs } = appends;
  const removed: FieldWrite[] = [];
  for (const text of oldest) {
    if (text === null)
      throw refused("STORE_CORRUPT", `The store is damaged: keyed append ${first} is missing.`, { first });
    const space = text.indexOf(" ");
    const atMs = Number(text.slice(0, space));
    if (atMs >= beforeMs) break;
    removed.push([appendField(text.slice(space + 1)), null], [numberField(first), null]);
    horizonMs = Math.max(horizonMs, atMs);
    first++;
  }
  return { appends: { ...appends, first, horizonMs }, fields: [...removed, ...fields] };
}
