import { summaryDetailsHeading } from "@throughline/core/internal";
import type { ExtractedDetails } from "./compaction-details.ts";
import { pathLine } from "./path-line.ts";

export interface SummaryTextOptions {
  readonly prose: string;
  readonly details: ExtractedDetails;
  readonly maxDetailTokens: number;
  readonly countText: (text: string) => number;
  /** Holds text that the model receives anyway; details in it are not repeated. @default nothing */
  readonly visibleText?: string;
  /** Holds the user's newest request, when the cut lies behind it. @default none */
  readonly splitRequest?: string | null;
  /** Names the tool that finds older memories; null when the agent has none. @default null */
  readonly memorySearchTool?: string | null;
}

/** Builds the text of a summary: the prose, and details that must not depend on a model. */
export function summaryText(options: SummaryTextOptions): string {
  const { prose, splitRequest, details } = options;
  const lines = [
    ...(splitRequest === undefined || splitRequest === null ? [] : [`The request being worked on: ${splitRequest}`]),
    ...detailLines(options),
    ...memoryLines(details, options.memorySearchTool ?? null),
  ];
  return lines.length === 0 ? prose.trim() : `${prose.trim()}\n\n${summaryDetailsHeading}\n${lines.join("\n")}`;
}

function memoryLines({ memoryFiles }: ExtractedDetails, tool: string | null): readonly string[] {
  const files =
    memoryFiles.length === 0 ? "" : `Memory files written since the summary before: ${memoryFiles.join(", ")}.`;
  const search = tool === null ? "" : `What is not in this summary can be looked up with ${tool}.`;
  const line = [files, search].filter((part) => part !== "").join(" ");
  return line === "" ? [] : [line];
}

/**
 * Lists the kinds in the order of their priority, with their shares of the budget. An unused share passes to the next
 * kinds.
 */
const kinds: readonly {
  readonly label: string;
  readonly share: number;
  readonly separator: string;
  readonly items: (details: ExtractedDetails) => readonly string[];
}[] = [
  { label: "First request", share: 0.08, separator: " ", items: ({ firstRequest }) => lineOf(firstRequest) },
  { label: "The user's wishes", share: 0.1, separator: " | ", items: ({ constraints }) => constraints },
  { label: "Files", share: 0.5, separator: ", ", items: ({ paths }) => paths },
  { label: "Names", share: 0.16, separator: ", ", items: ({ symbols }) => symbols },
  { label: "Commands", share: 0.09, separator: " | ", items: ({ commands }) => commands },
  { label: "Values", share: 0.05, separator: " | ", items: ({ quoted }) => quoted },
  { label: "Ids", share: 0.02, separator: ", ", items: ({ identifiers }) => identifiers },
];

/** A shortened first request uses the longest of these lengths that fits, in characters. */
const requestLengths: readonly number[] = [160, 120, 90, 60, 40];

function lineOf(firstRequest: string | null): readonly string[] {
  if (firstRequest === null) return [];
  const line = firstRequest.replaceAll(/\s+/g, " ");
  return [line.length <= 160 ? line : `${line.slice(0, 159)}…`.toWellFormed()];
}

/** A request that exceeds its budget keeps its start, because the reader needs the purpose of the conversation. */
function requestLine(
  label: string,
  line: string,
  roomTokens: number,
  countText: (text: string) => number,
): string | null {
  const cuts = requestLengths.map((most) =>
    line.length <= most
      ? line
      : `${line
          .slice(0, most - 1)
          .toWellFormed()
          .trimEnd()}…`,
  );
  const fitting = cuts.find((cut) => countText(`${label}: ${cut}\n`) <= roomTokens);
  return fitting === undefined ? null : `${label}: ${fitting}`;
}

function detailLines(options: SummaryTextOptions): readonly string[] {
  const { details, maxDetailTokens, countText, prose, visibleText = "" } = options;
  const seen = `${prose}\n${visibleText}`;
  const lines: string[] = [];
  // The heading counts against the budget of the details.
  let left = maxDetailTokens - countText(`\n\n${summaryDetailsHeading}\n`);
  let carried = 0;
  for (const { label, share, separator, items } of kinds) {
    const room = Math.min(left, Math.floor(maxDetailTokens * share) + carried);
    const list = items(details);
    const [request] = label === "First request" ? list.filter((item) => !seen.includes(item)) : [];
    const line =
      request !== undefined
        ? requestLine(label, request, room, countText)
        : label === "Files"
          ? pathLine(list, new Set(details.modifiedFiles), seen, room, countText)
          : fittingLine(
              label,
              list.filter((item) => !seen.includes(item)),
              separator,
              room,
              countText,
            );
    const cost = line === null ? 0 : countText(`${line}\n`);
    carried = Math.max(0, room - cost);
    left -= cost;
    if (line !== null) lines.push(line);
  }
  return lines;
}

function fittingLine(
  label: string,
  items: readonly string[],
  separator: string,
  roomTokens: number,
  countText: (text: string) => number,
): string | null {
  const chosen: string[] = [];
  let tokens = countText(`${label}: \n`);
  for (const item of items) {
    const clean = item.replaceAll(/\s+/g, " ");
    const cost = countText(separator + clean);
    // A long item must not block the shorter items behind it.
    if (tokens + cost > roomTokens) continue;
    tokens += cost;
    chosen.push(clean);
  }
  return chosen.length === 0 ? null : `${label}: ${chosen.join(separator)}`;
}
