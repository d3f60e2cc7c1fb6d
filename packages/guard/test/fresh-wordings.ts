import { readFileSync } from "node:fs";
import { classifyOverflow } from "../src/classify-overflow.ts";
import type { OverflowClassification, OverflowKind } from "../src/overflow.ts";

/** An error in words that no rule was written from when the row was. */
export interface FreshWording {
  /** Rules may be made better by looking at the open half. What the other half shows is measured and left alone. */
  readonly half: "open" | "held-out";
  /** The provider or program whose manner it has. */
  readonly from: string;
  readonly status: number | null;
  readonly said: string;
  /** null when it is no overflow. */
  readonly kind: OverflowKind | null;
}

/** All of them. */
export function readFreshWordings(): readonly FreshWording[] {
  const file = new URL("fixtures/fresh-wordings.jsonl", import.meta.url);
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line) as FreshWording);
}

/** What the classifier says about one, handed over as the SDKs do: a message, the status, and a body that was parsed. */
function judged({ from, status, said }: FreshWording): OverflowClassification {
  const body = said.startsWith("{") ? { error: JSON.parse(said) as unknown } : {};
  const message = status !== null && said.startsWith("{") ? `${status} ${said}` : said;
  return classifyOverflow({ provider: from, ...(status === null ? {} : { status }), message, ...body });
}

/** How a group of rows fares. */
export interface FreshScore {
  readonly overflows: number;
  readonly found: number;
  readonly rightKind: number;
  readonly lookAlikes: number;
  readonly falseAlarms: readonly string[];
  readonly missed: readonly string[];
}

/** Counts over some rows. */
export function scoreOf(rows: readonly FreshWording[]): FreshScore {
  const judgements = rows.map((row) => ({ row, judgement: judged(row) }));
  const overflows = judgements.filter(({ row }) => row.kind !== null);
  const lookAlikes = judgements.filter(({ row }) => row.kind === null);
  const said = ({ row }: (typeof judgements)[number]): string => row.said;
  return {
    overflows: overflows.length,
    found: overflows.filter(({ judgement }) => judgement.overflow).length,
    rightKind: overflows.filter(({ row, judgement }) => judgement.kind === row.kind).length,
    lookAlikes: lookAlikes.length,
    falseAlarms: lookAlikes.filter(({ judgement }) => judgement.overflow).map(said),
    missed: overflows.filter(({ judgement }) => !judgement.overflow).map(said),
  };
}
