import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { describeKind, variableOf } from "../packages/config/src/setting-definition.ts";
import { settingAliases } from "../packages/config/src/setting-aliases.ts";
import { settingTables } from "../packages/config/src/setting-tables.ts";
import { presets } from "../packages/config/src/presets.ts";
import type { SettingDefinition } from "../packages/config/src/setting-definition.ts";
import { repositoryRoot } from "./find-files.ts";

/** The page whose tables are made from the schema. */
export const referencePath: string = join(repositoryRoot, "docs/configuration.md");

const begin = "<!-- made by tools/config-reference.ts -->";
const end = "<!-- end of what is made -->";

/** The tables, as they belong between the two marks. */
export function configReference(): string {
  const names = [...new Set(settingTables.map(({ area }) => area))];
  const areas = names.map((name) => {
    const settings = settingTables.filter(({ area }) => area === name).flatMap((table) => table.settings);
    const head = ["| key | meaning | range | default |", "| --- | --- | --- | --- |"];
    return [`### ${headings[name] ?? name}`, "", ...head, ...settings.map(settingRow)].join("\n");
  });
  return [
    begin,
    "",
    areas.join("\n\n"),
    "",
    "## Presets",
    "",
    presetList(),
    "",
    "## Other words",
    "",
    aliasTable(),
    "",
    end,
  ].join("\n");
}

/** The page with the tables as the schema has them. */
export function pageWithTables(page: string): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from === -1 || to === -1) throw new Error(`docs/configuration.md has lost a mark: ${begin} … ${end}`);
  return page.slice(0, from) + configReference() + page.slice(to + end.length);
}

const headings: Readonly<Record<string, string>> = {
  cli: "The program",
  chat: "Conversations",
  session: "Sessions",
  "session.inherit": "Sessions of other programs",
  "session.turn": "Turns",
  "session.compaction": "Compaction and summaries",
  "session.checkpoint": "Checkpoints",
  "session.memoryFlush": "Memory flush",
  server: "The server",
  gateway: "The gateway",
  sync: "Sessions of every program",
};

/** What holds by itself where a default depends on the machine. */
const places: Readonly<Record<string, string>> = {
  home: "`~/.throughline`",
  store: "`sqlite:` with `sessions.db` in the home",
  "session.inherit.source": "`~/.openclaw/agents/main/sessions`",
};

/** The words of messages, shortened for a cell; the page says what they mean. */
function rangeOf(kind: SettingDefinition["kind"]): string {
  return describeKind(kind)
    .replaceAll(/a whole number from (\d+) to (\d+)/g, "$1–$2")
    .replaceAll(/a number above (\d+) and below (\d+)/g, "over $1, under $2")
    .replaceAll("text that is not empty", "text")
    .replaceAll("true or false", "boolean")
    .replace(/^one of /, "");
}

function settingRow(setting: SettingDefinition): string {
  const { key, description, kind, default: fallback } = setting;
  const shown = places[key] ?? (fallback === null ? "" : fallback === "" ? "empty" : code(fallback));
  return `| \`${key}\`${namesOf(setting)} | ${cell(description)} | ${cell(rangeOf(kind))} | ${shown} |`;
}

/** The flag of a setting, and the variables whose names do not follow from its key. */
function namesOf({ key, flag, environment }: SettingDefinition): string {
  const variables = environment.map(({ name }) => name).filter((name) => name !== variableOf(key));
  return [...(flag === null ? [] : [flag]), ...variables].map((name) => `, \`${name}\``).join("");
}

/** Each preset as an object of a file, with the keys in the order of the tables above. */
function presetList(): string {
  const keys = settingTables.flatMap(({ settings }) => settings.map(({ key }) => key));
  const blocks = Object.entries(presets).map(([name, values]) => {
    const rows = keys.flatMap((key) => (values[key] === undefined ? [] : [`${key}: ${shownText(values[key])}`]));
    return [`### \`${name}\``, "", "```text", ...rows, "```"].join("\n");
  });
  return blocks.join("\n\n");
}

function aliasTable(): string {
  const rows = Object.entries(settingAliases).map(([alias, key]) => `| \`${alias}\` | \`${key}\` |`);
  return ["| word | means |", "| --- | --- |", ...rows].join("\n");
}

/** Prompts are shown by their thresholds: whole they would not fit a table. */
function shownText(value: unknown): string {
  const isPrompts = Array.isArray(value) && value.some((item) => typeof item === "object");
  const shown = isPrompts
    ? (value as readonly { percent: number; injectAs: string }[]).map(
        ({ percent, injectAs }) => `${percent} ${injectAs}`,
      )
    : value;
  return typeof shown === "string" ? shown : JSON.stringify(shown);
}

function code(value: unknown): string {
  return cell(`\`${shownText(value)}\``);
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}

if (import.meta.main) {
  const page = readFileSync(referencePath, "utf8");
  const made = pageWithTables(page);
  if (process.argv.includes("--write")) writeFileSync(referencePath, made);
  const isSame = page === made || process.argv.includes("--write");
  process.stdout.write(`configuration reference: ${isSame ? "as the schema has it" : "run it with --write"}\n`);
  process.exitCode = isSame ? 0 : 1;
}
