import { describe, expect, it } from "vitest";
import { testSize } from "../../../../tools/test-size.ts";
import { jsonLines, readUnits, refusals } from "../read-units.ts";
import type { Fields } from "./lines.ts";
import { RandomTree } from "./random-trees.ts";
import { bySdk, byUs, type Lines } from "./sdk-reader.ts";

/** Where the words of a message stand: its line, and the reply that it is of or answers. */
interface Place {
  readonly line: number;
  readonly reply: unknown;
  readonly callId: unknown;
}

/** The places of thoughts, calls and results by their words, which name each. */
function placesOf(lines: Lines): ReadonlyMap<string, Place> {
  const places = new Map<string, Place>();
  const replies = new Map<unknown, unknown>();
  for (const [line, { message }] of lines.entries()) {
    const { id, content } = (message ?? {}) as { readonly id?: unknown; readonly content?: unknown };
    for (const block of Array.isArray(content) ? (content as readonly Fields[]) : []) {
      const { type, id: callId, tool_use_id: answered, thinking } = block;
      if (type === "thinking")
        places.set(`assistant: (thinking ${String(thinking)})`, { line, reply: id, callId: null });
      if (type === "tool_use") {
        replies.set(callId, id);
        places.set(`assistant: ?${String(callId)}`, { line, reply: id, callId });
      } else if (type === "tool_result")
        places.set(`user: of ${String(answered)}`, { line, reply: replies.get(answered), callId: answered });
    }
  }
  return places;
}

/**
 * The messages of a request: results without their calls are left out, which no provider takes. Where a way leads through a
 * part of a reply only, the SDK puts the rest of the reply behind that part; here it is in the order in which it was
 * written.
 */
function inRequest(messages: readonly string[], places: ReadonlyMap<string, Place>): readonly string[] {
  const calls = new Set(messages.flatMap((one) => (one.startsWith("assistant: ?") ? [places.get(one)?.callId] : [])));
  const rows: { readonly reply: unknown; readonly parts: string[] }[] = [];
  for (const one of messages) {
    const place = places.get(one);
    if (one.startsWith("user: of ") && !calls.has(place?.callId)) continue;
    const row = rows.at(-1);
    if (row !== undefined && row.reply !== undefined && row.reply === place?.reply) row.parts.push(one);
    else rows.push({ reply: place?.reply, parts: [one] });
  }
  const lineOf = (one: string): number => places.get(one)?.line ?? -1;
  return rows.flatMap(({ parts }) => parts.toSorted((one, other) => lineOf(one) - lineOf(other)));
}

/** Replies of which the SDK shows a result and no call: a person continued behind a result that a compaction kept. */
function withoutCalls(messages: readonly string[], places: ReadonlyMap<string, Place>): ReadonlySet<unknown> {
  const there = messages.flatMap((one) => places.get(one) ?? []);
  const called = new Set(messages.filter((one) => one.startsWith("assistant: ")).map((one) => places.get(one)?.reply));
  return new Set(there.map(({ reply }) => reply).filter((reply) => !called.has(reply)));
}

const count: number = testSize({ short: 50, long: 10_000 });

describe("a session of Claude Code with compactions, rewinds and sub-agents", () => {
  it(`has the messages that the Claude Agent SDK reads, in ${count} trees`, { timeout: 600_000 }, async () => {
    let [compacted, equal] = [0, 0];
    for (let seed = 1; seed <= count; seed++) {
      const { lines } = new RandomTree(seed);
      const theirs = await bySdk(lines);
      const session = readUnits("claude-code", jsonLines(...lines));
      const ours = byUs(session);
      const places = placesOf(lines);
      const left = withoutCalls(theirs, places);
      const shown = inRequest(ours, places).filter((one) => !left.has(places.get(one)?.reply ?? null));
      expect([seed, shown]).toEqual([seed, inRequest(theirs, places)]);
      expect([seed, refusals(session)]).toEqual([seed, []]);
      if (theirs.some((one) => one.startsWith("user: Summary"))) compacted += 1;
      if (JSON.stringify(ours) === JSON.stringify(theirs)) equal += 1;
    }
    // Most have a compaction in their context, and nearly all are the same also beyond what a request holds.
    expect([compacted > count / 2, equal > count * 0.9]).toEqual([true, true]);
  });
});
