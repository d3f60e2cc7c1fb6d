import type { JSX } from "preact";
import { getJson } from "../api.ts";
import { count, counted, folderOf, programName } from "../format.ts";
import type { UsageReportJson, UsageRowJson } from "../json.ts";
import { hrefWith, navigate } from "../router.ts";
import { EmptyState, FailedState, LoadingRows } from "../ui/states.tsx";
import { shown } from "../ui/text.ts";
import { useLoad } from "../use-load.ts";
import { costText } from "./cost-text.ts";
import { UsageTotals } from "./usage-totals.tsx";

const keys = [
  ["day", "Day"],
  ["week", "Week"],
  ["month", "Month"],
  ["model", "Model"],
  ["program", "Program"],
  ["folder", "Folder"],
  ["session", "Session"],
  ["agent", "Agent"],
] as const;
const spans = [
  ["7", "Last 7 days"],
  ["30", "Last 30 days"],
  ["365", "Last year"],
  ["", "All time"],
] as const;

const dayMs = 24 * 60 * 60_000;
const mostRows = 400;

/** Shows tokens and cost of all sessions, as `throughline usage` prints them. */
export function Page({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const by = (query.get("by") ?? "day").split(",").slice(0, 2);
  const [first = "day", second = ""] = by;
  const days = query.get("days") ?? "";
  const sinceMs = /^\d{1,4}$/.test(days) ? Math.floor((Date.now() - Number(days) * dayMs) / 900_000) * 900_000 : null;
  const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const { loaded, reload } = useLoad<UsageReportJson>(
    `${by.join()} ${days}`,
    (signal) => getJson("/usage", { by: by.join(), sinceMs, timeZone }, signal),
    { keeps: true },
  );
  const change = (one: string, other: string): void =>
    navigate(hrefWith({ by: other === "" || other === one ? one : `${one},${other}` }));
  return (
    <main class="page usage-page" id="main">
      <div class="usage-head">
        <h1>Usage</h1>
        <div class="filters" role="group" aria-label="Groups">
          <Choice label="By" value={first} options={keys} onPick={(value) => change(value, second)} />
          <Choice
            label="And by"
            value={second}
            options={[["", "and by …"], ...keys]}
            onPick={(value) => change(first, value)}
          />
          <Choice label="Time" value={days} options={spans} onPick={(value) => navigate(hrefWith({ days: value }))} />
        </div>
      </div>
      {loaded.state === "loading" ? <LoadingRows /> : null}
      {loaded.state === "failed" ? <FailedState error={loaded.error} reload={reload} /> : null}
      {loaded.state === "done" ? <Report report={loaded.value} by={by} /> : null}
    </main>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [string, string])[];
  readonly onPick: (value: string) => void;
}

function Choice({ label, value, options, onPick }: ChoiceProps): JSX.Element {
  return (
    <select class="field" aria-label={label} value={value} onChange={(event) => onPick(event.currentTarget.value)}>
      {options.map(([each, text]) => (
        <option key={each} value={each}>
          {text}
        </option>
      ))}
    </select>
  );
}

interface ReportProps {
  readonly report: UsageReportJson;
  readonly by: readonly string[];
}

function Report({ report, by }: ReportProps): JSX.Element {
  const { rows, total, pricesAsOf, unread } = report;
  if (rows.length === 0)
    return (
      <EmptyState title="No usage in this time">
        <p>Imported sessions count when their program states tokens.</p>
      </EmptyState>
    );
  const most = Math.max(...rows.map(weightOf), 1e-9);
  return (
    <>
      <UsageTotals total={total} pricesAsOf={pricesAsOf} />
      <div class="wide-table" tabIndex={0} role="region" aria-label="Usage by group">
        <table>
          <thead>
            <tr>
              {by.map((key) => (
                <th key={key}>{keys.find(([name]) => name === key)?.[1] ?? shown(key)}</th>
              ))}
              <th class="bar-cell">
                <span class="hidden">Share</span>
              </th>
              <th class="right">Calls</th>
              <th class="right">Input</th>
              <th class="right">Cache read</th>
              <th class="right">Output</th>
              <th class="right">Cost</th>
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, mostRows).map((row) => (
              <tr key={JSON.stringify(row.group)}>
                {by.map((key) => (
                  <td key={key}>{shown(groupText(key, row))}</td>
                ))}
                <td class="bar-cell">
                  <span class="bar" style={{ width: `${(100 * weightOf(row)) / most}%` }} />
                </td>
                <td class="right">{count(row.calls)}</td>
                <td class="right">{count(row.input)}</td>
                <td class="right">{count(row.cacheRead)}</td>
                <td class="right">{count(row.output)}</td>
                <td class="right">{costText(row.costUsd)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="soft note">
        {rows.length > mostRows ? `${count(mostRows)} of ${count(rows.length)} rows shown. ` : ""}
        {unread.length > 0 ? `${counted(unread.length, "session")} cannot be read and are not counted.` : ""}
      </p>
    </>
  );
}

/** A bar shows the cost, or the tokens where no cost is known. */
function weightOf({ costUsd, input, output, cacheRead }: UsageRowJson): number {
  return costUsd ?? (input + output + cacheRead) / 1e9;
}

function groupText(key: string, { group, name }: UsageRowJson): string {
  const value = group[key] ?? null;
  if (key === "program") return programName(value === "own" ? null : value);
  if (key === "session") return name ?? value ?? "–";
  if (value === null) return "–";
  return key === "folder" ? folderOf(value) : value;
}
