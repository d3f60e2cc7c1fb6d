// The text of docs/benchmarks.md, and which pictures it shows.
import type { PeerClass } from "../../../benchmarks/peers.ts";
import { barChart, curveChart, short, type Bar, type Curve } from "./charts.ts";
import type { Growth } from "./growth.ts";
import type { Run } from "./run.ts";

type Entrant = PeerClass["entrants"][number];

const classTitles: Readonly<Record<string, string>> = {
  disk: "A turn that is on the disk when it is acknowledged",
  process: "A turn that survives the process, not a power cut",
  memory: "A turn in memory",
};
const storeTitles: Readonly<Record<string, string>> = { sqlite: "SQLite", jsonl: "JSON Lines" };

/** What grows, and which figure shows it. JSON Lines has no search index. */
const growths: readonly {
  readonly name: string;
  readonly title: string;
  readonly unit: string;
  readonly of: (growth: Growth) => number;
  readonly stores: readonly ("sqlite" | "jsonl")[];
}[] = [
  { name: "turn", title: "A durable turn", unit: "µs a turn", of: ({ turnUs }) => turnUs, stores: ["sqlite", "jsonl"] },
  {
    name: "list",
    title: "A list of the newest 50 sessions",
    unit: "ms",
    of: ({ listMs }) => listMs,
    stores: ["sqlite", "jsonl"],
  },
  {
    name: "resume",
    title: "Opening the store and resuming",
    unit: "ms",
    of: ({ resumeMs }) => resumeMs,
    stores: ["sqlite", "jsonl"],
  },
  { name: "search", title: "A search for a rare word", unit: "ms", of: ({ searchMs }) => searchMs, stores: ["sqlite"] },
  {
    name: "memory",
    title: "Memory of list, resume and search",
    unit: "MB over the start",
    of: ({ memoryMb }) => memoryMb,
    stores: ["sqlite", "jsonl"],
  },
];

function measuredOf({ entrants }: PeerClass): readonly Entrant[] {
  return entrants.filter(({ failure }) => failure === null);
}

function barsOf(raced: PeerClass): readonly Bar[] {
  return measuredOf(raced).map(({ title, kind, lastUs }) => ({
    title: title.replace("control: ready lines, ", "control: "),
    kind,
    value: lastUs,
    label: `${short(lastUs)} µs`,
  }));
}

function curvesOf({ growth }: Run, place: number): readonly Curve[] {
  const shown = growths[place];
  if (shown === undefined) return [];
  const curves: Curve[] = shown.stores.map((kind) => ({
    title: storeTitles[kind] ?? kind,
    kind,
    points: growth
      .filter(({ store }) => store === kind)
      .map((each) => [each.records, Math.max(0.01, shown.of(each))] as const),
  }));
  if (shown.name !== "turn") return curves;
  const points = growth
    .filter(({ store }) => store === "sqlite")
    .map((each) => [each.records, each.controlUs] as const);
  return [...curves, { title: "write and fdatasync", kind: "control", points }];
}

function gatewayBars({ gateway }: Run): readonly Bar[] {
  const rows: readonly (readonly [string, readonly number[], string])[] = [
    ["first byte", gateway.firstByteMs, "ms"],
    ["first byte, 99th percentile", gateway.firstByteP99Ms, "ms"],
    ["20 streams at once", gateway.togetherMs, "ms"],
  ];
  return rows.flatMap(([title, [bare = 1, ours = 1], unit]): Bar[] => [
    { title: `bare proxy: ${title}`, kind: "peer", value: bare, label: `${short(bare)} ${unit}` },
    { title: `gateway: ${title}`, kind: "ours", value: ours, label: `${short(ours)} ${unit}` },
  ]);
}

/** The names of the files and their content. */
export function picturesOf(run: Run): ReadonlyMap<string, string> {
  const pictures = new Map<string, string>();
  const logNote = "Shorter is better. The lengths are logarithmic.";
  for (const raced of run.peers)
    pictures.set(
      `benchmarks-race-${raced.durability}.svg`,
      barChart(classTitles[raced.durability] ?? raced.durability, logNote, barsOf(raced)),
    );
  for (const [place, { name, title, unit }] of growths.entries())
    pictures.set(`benchmarks-${name}.svg`, curveChart(title, unit, curvesOf(run, place)));
  pictures.set("benchmarks-gateway.svg", barChart("The gateway beside a bare proxy", logNote, gatewayBars(run)));
  return pictures;
}

function peerTable({ durability, entrants }: PeerClass): string {
  const rows = entrants.map(({ title, failure, turns, firstUs, lastUs, reopenMs, bytesPerTurn }) =>
    failure === null
      ? `| ${title} | ${turns} | ${short(firstUs)} | ${short(lastUs)} | ${short(reopenMs)} | ${bytesPerTurn > 0 ? short(bytesPerTurn) : "–"} |`
      : `| ${title} | failed in this run |  |  |  |  |`,
  );
  return [
    `![${classTitles[durability] ?? durability}](images/benchmarks-race-${durability}.svg)`,
    "",
    "| session layer | turns | first turns, µs | last turns, µs | reopen, ms | bytes a turn |",
    "| --- | --: | --: | --: | --: | --: |",
    ...rows,
  ].join("\n");
}

function count(value: number): string {
  return value.toLocaleString("en-US");
}

function growthTable({ growth }: Run): string {
  const rows = growth.map((each) => {
    const search = each.store === "jsonl" ? "–" : short(each.searchMs);
    const figures = [each.turnUs, each.turnUs / each.controlUs, each.listMs, each.resumeMs].map(short);
    const place = [storeTitles[each.store] ?? each.store, count(each.records), count(each.sessions)];
    return `| ${[...place, ...figures, search, short(each.memoryMb)].join(" | ")} |`;
  });
  return [
    "| store | records | sessions | turn, µs | over its control | list, ms | resume, ms | search, ms | memory, MB |",
    "| --- | --: | --: | --: | --: | --: | --: | --: | --: |",
    ...rows,
  ].join("\n");
}

function gatewayTable({ gateway }: Run): string {
  const row = (title: string, [bare = 0, ours = 0]: readonly number[], unit: string): string =>
    `| ${title} | ${short(bare)} ${unit} | ${short(ours)} ${unit} |`;
  return [
    "| | bare proxy | gateway |",
    "| --- | --: | --: |",
    row("first byte, median", gateway.firstByteMs, "ms"),
    row("first byte, 99th percentile", gateway.firstByteP99Ms, "ms"),
    row("one event of a stream", gateway.eventUs, "µs"),
    row("end of the answer, after its last event", gateway.endMs, "ms"),
    row("20 streams at once", gateway.togetherMs, "ms"),
  ].join("\n");
}

/** Each peer that was faster than one of our stores, and what grows with us. */
function lossesOf(run: Run): readonly string[] {
  const losses: string[] = [];
  for (const raced of run.peers)
    for (const own of measuredOf(raced).filter(({ kind }) => kind === "ours"))
      for (const peer of measuredOf(raced).filter(({ kind, lastUs }) => kind === "peer" && lastUs <= own.lastUs))
        losses.push(
          `- **${peer.title}** takes ${short(peer.lastUs)} µs where ${own.title} takes ${short(own.lastUs)} (class ${raced.durability}).`,
        );
  for (const raced of run.peers)
    for (const { title, lastUs } of measuredOf(raced).filter(({ kind }) => kind === "control")) {
      const ours = measuredOf(raced).filter(({ kind }) => kind === "ours");
      const ratios = ours.map((own) => `${own.title} ${short(own.lastUs / lastUs)} times`).join(", ");
      losses.push(`- Beside the ${title} (class ${raced.durability}): ${ratios}.`);
    }
  for (const { title, of, stores, unit } of growths)
    for (const kind of stores) {
      const rows = run.growth.filter(({ store }) => store === kind);
      const [first, last] = [rows[0], rows.at(-1)];
      if (first === undefined || last === undefined || of(last) < 3 * of(first)) continue;
      losses.push(
        `- ${title} on ${storeTitles[kind] ?? kind} grows: ${short(of(first))} at ${count(first.records)} records, ${short(of(last))} at ${count(last.records)} (${unit}).`,
      );
    }
  return losses;
}

const introduction = `# Benchmarks

\`\`\`sh
# not run: takes minutes and installs other programs
node --conditions=@throughline/source lab/benchmarks/page.ts --write docs/benchmarks.md
\`\`\`

This command measures everything on this page in one run, and writes the page, the pictures and
[the raw figures](images/benchmarks.json). It needs 4 GB of disk. \`--peers FOLDER\` keeps the packages of the peers for the next run.`;

const raceText = `## Beside other session layers

A turn is a question of 200 bytes, a tool call, a result of 1,000 bytes and an answer of 500 bytes. Every program runs in a process of its
own. All take turns in every round. The figures are medians of rounds; "first" and "last" are the medians of at most 100 turns. Compare only
inside a class. A store that promises more in a turn takes longer. Slow programs get fewer turns.`;

const growthText = `Half of the records are in one long session with a summary before its last 100 records. The others are in sessions of ten records. A durable
turn appends four records to the long session. Its control writes the same bytes to a file and flushes it, and takes turns with it. A resume
opens the store, reads the window and builds the context. The search has ten hits. JSON Lines has no
search index, and reads the list of all sessions when it opens.`;

const gatewayText = `## The gateway beside a bare proxy

Both pass the same stream of 300 events on, in turns. The request holds 200 kB of history, and the gateway stores each call. Client, provider
and both proxies share one process, so a bare proxy pays for them too.`;

/** The whole page. */
export function pageOf(run: Run): string {
  const { machine } = run;
  const sizes = run.growth.map(({ records }) => records);
  const [smallest, largest] = [Math.min(...sizes), Math.max(...sizes)];
  const about =
    `Measured on ${run.date} with version ${run.version}, Node ${machine.node.slice(1)}, on ${machine.cores} virtual cores with ` +
    `${machine.memoryGb} GB of memory (${machine.system}).\nThe peers took ${run.turns} turns in each of ${run.rounds} round${run.rounds === 1 ? "" : "s"}. ` +
    `The whole run took ${run.minutes.toFixed(0)} minutes.\nAbsolute times depend on the disk; compare with the control of the same run.`;
  const sections = [
    introduction,
    about,
    raceText,
    ...run.peers.map((raced) => `### Class: ${raced.durability}\n\n${peerTable(raced)}`),
    `## From ${count(smallest)} to ${count(largest)} records\n\n${growthText}`,
    ...growths.map(({ name, title }) => `![${title}](images/benchmarks-${name}.svg)`),
    growthTable(run),
    gatewayText,
    "![The gateway beside a bare proxy](images/benchmarks-gateway.svg)",
    gatewayTable(run),
    "## Where we lose",
    lossesOf(run).join("\n"),
  ];
  return `${sections.join("\n\n")}\n`;
}
