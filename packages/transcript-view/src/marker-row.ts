import type { SessionRecord } from "@throughline/core";
import { type Fields, isFields, isTombstone, type Steps, throughlineKind } from "@throughline/core/internal";
import { blocksOf, messageNodes, textOf } from "./block-nodes.ts";
import { markdownTree } from "./markdown-tree.ts";
import type { RowOptions } from "./row-options.ts";
import { sizeText } from "./text-blocks.ts";
import type { RowBadge, RowContent } from "./transcript-row.ts";

const empty = { detail: "", badges: [], fold: "none", tree: [] } as const;

/** Returns what a record that is no message shows; null for one that people need not see. */
export function* markerRow(record: SessionRecord, options: RowOptions): Steps<RowContent | null> {
  if (isTombstone(record)) return redactedRow(record);
  const { level } = options;
  switch (record.type) {
    case "compaction":
      return yield* compactionRow(record);
    case "branch_summary": {
      const summary = textOf(record["summary"]);
      if (summary === "") return null;
      const tree = yield* markdownTree(summary);
      return { ...empty, kind: "compaction", title: "Summary of another branch", fold: "closed", tree };
    }
    case "reset":
      return { ...empty, kind: "marker", title: "Reset", detail: textOf(record["reason"]) };
    case "model_change":
      return marker(level, "Model", [textOf(record["provider"]), textOf(record["modelId"])].filter(Boolean).join("/"));
    case "thinking_level_change":
      return level === "full" ? marker(level, "Thinking level", textOf(record["thinkingLevel"])) : null;
    case "custom_message": {
      if (level === "words") return null;
      const tree = yield* messageNodes(blocksOf(record["content"]), options);
      return { ...empty, kind: "note", title: textOf(record["customType"]) || "Extension", fold: "closed", tree };
    }
    case "context_edit":
      return marker(level, "Edited", "a record changes an earlier message for the model");
    default:
      return throughlineKind(record) === "edit"
        ? marker(level, "Edited", "a record changes an earlier message for the model")
        : null;
  }
}

function marker(level: RowOptions["level"], title: string, detail: string): RowContent | null {
  return level === "words" ? null : { ...empty, kind: "marker", title, detail };
}

function redactedRow({ data }: SessionRecord): RowContent {
  const { reason, originalBytes, redactedAtMs } = (isFields(data) ? data : {}) as Fields;
  const day = typeof redactedAtMs === "number" && Math.abs(redactedAtMs) < 8.64e15 ? dayText(redactedAtMs) : "";
  const facts = [textOf(reason), typeof originalBytes === "number" ? sizeText(originalBytes) : "", day];
  return { ...empty, kind: "redacted", title: "Redacted", detail: facts.filter((fact) => fact !== "").join(" · ") };
}

function dayText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

function* compactionRow(record: SessionRecord): Steps<RowContent> {
  const { tokensBefore, tokensAfter, details, summary } = record;
  const source = isFields(details) ? textOf(details["source"]) : "";
  const [before, after] = [countText(tokensBefore), countText(tokensAfter)];
  const size = before === "" ? "" : after === "" ? `${before} tokens before` : `${before} → ${after} tokens`;
  const badges: RowBadge[] = source === "" ? [] : [{ text: `summary: ${source}`, tone: "plain" }];
  const tree = yield* markdownTree(textOf(summary));
  return { kind: "compaction", title: "Compaction", detail: size, badges, fold: "closed", tree };
}

function countText(value: unknown): string {
  return typeof value === "number" && value > 0 ? Math.round(value).toLocaleString("en-US") : "";
}
