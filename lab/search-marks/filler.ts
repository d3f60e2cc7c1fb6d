import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { SetSession } from "./question-set.ts";

const sessionLength = 200;
const fewestWords = 6;
const mostWords = 40;
/** Every conversation of the sets is older. */
const firstDayMs = Date.parse("2026-01-01T00:00:00Z");
const sessionMs = 4 * 3_600_000;

/** Returns sessions of short records, the sentences of chats about other things, newer than every evidence. */
export function* fillerSessions(folder: string, count: number): Generator<SetSession> {
  let records: SetSession["records"][number][] = [];
  let written = 0;
  let sessions = 0;
  if (count <= 0) return;
  for (const text of sentencesIn(folder)) {
    const role = records.length % 2 === 0 ? "user" : "assistant";
    records.push({ label: "", message: { role, content: [{ type: "text", text }] } });
    written++;
    if (records.length < sessionLength && written < count) continue;
    yield { name: `filler-${sessions}`, startMs: firstDayMs + sessions * sessionMs, records };
    records = [];
    sessions++;
    if (written >= count) return;
  }
  throw new Error(`The chats of ${folder} have only ${written} sentences of ${count}.`);
}

function* sentencesIn(folder: string): Generator<string> {
  const known = new Set<string>();
  for (const file of readdirSync(folder).toSorted()) {
    const batches = JSON.parse(readFileSync(join(folder, file), "utf8")) as readonly {
      readonly turns: readonly (readonly { readonly content: string }[])[];
    }[];
    for (const { content } of batches.flatMap(({ turns }) => turns.flat()))
      for (const sentence of content.split(/[.!?]\s|\n+/)) {
        const text = sentence.trim();
        const words = text.split(" ").length;
        if (words < fewestWords || words > mostWords || known.has(text)) continue;
        known.add(text);
        yield text;
      }
  }
}
