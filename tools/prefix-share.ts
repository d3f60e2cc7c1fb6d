// How much of each request is, to the byte, what was sent before: over every call of the real conversations, by provider.
// THROUGHLINE_CORPUS=<folder> node --conditions=@throughline/source tools/prefix-share.ts
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { SessionRecord, StoredRecord } from "../packages/core/src/index.ts";
import { createHistory } from "../packages/history/src/index.ts";
import { historyTargets } from "../packages/history/src/history-targets.ts";
import type { History, HistoryTarget } from "../packages/history/src/index.ts";
import { commonLength, openEnd } from "../packages/history/test/sent-prefix.ts";
import { storedRecords } from "../packages/history/test/stored-records.ts";

const conversations: readonly string[] = ["before-compaction", "large-session"];

function readRecords(folder: string, name: string): readonly StoredRecord[] {
  const lines = readFileSync(join(folder, "golden", `${name}.v3.jsonl`), "utf8")
    .trimEnd()
    .split("\n");
  return storedRecords(lines.map((line) => JSON.parse(line) as SessionRecord));
}

function isReply({ type, record }: StoredRecord): boolean {
  return type === "message" && (record["message"] as { readonly role?: unknown }).role === "assistant";
}

/** Why a request does not go on from the one before, where the log says so. */
function isChanging({ type }: StoredRecord): boolean {
  return ["compaction", "reset", "context_edit", "model_change"].includes(type);
}

/** Null where two replies stand in a row: what the second one answered is not in the log, so nothing can go on from it. */
function sentBefore(history: History): string | null {
  const { messages, repairs } = history.render();
  return repairs.some(({ rule }) => rule === "continuation-added") ? null : openEnd(messages);
}

interface Share {
  calls: number;
  sentChars: number;
  sharedChars: number;
  /** Calls that do not begin with all of the call before, although nothing was compacted or switched in between. */
  broken: number;
}

function shareOf(records: readonly StoredRecord[], target: HistoryTarget): Share {
  const share: Share = { calls: 0, sentChars: 0, sharedChars: 0, broken: 0 };
  let before: string | null = null;
  let isChanged = false;
  const history = createHistory(target);
  for (const record of records) {
    isChanged ||= isChanging(record);
    const sent = isReply(record) ? sentBefore(history) : null;
    history.append([record]);
    if (sent === null) continue;
    if (before !== null) {
      const common = commonLength(before, sent);
      share.calls++;
      share.sentChars += before.length;
      share.sharedChars += common;
      if (common < before.length && !isChanged) share.broken++;
    }
    before = sent;
    isChanged = false;
  }
  return share;
}

const folder = process.env["THROUGHLINE_CORPUS"];
if (folder === undefined) {
  process.stderr.write("THROUGHLINE_CORPUS names no folder\n");
  process.exitCode = 2;
} else {
  process.stdout.write(
    "| conversation | provider | calls | resent as before | broken without a reason |\n|--|--|--|--|--|\n",
  );
  for (const name of conversations) {
    const records = readRecords(folder, name);
    for (const target of historyTargets.values()) {
      const { calls, sentChars, sharedChars, broken } = shareOf(records, target);
      const percent = ((100 * sharedChars) / sentChars).toFixed(2);
      process.stdout.write(`| ${name} | ${target.name} | ${calls} | ${percent} % | ${broken} |\n`);
    }
  }
}
