import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";
import { repositoryRoot } from "./find-files.ts";

const file = join(repositoryRoot, "packages/tokens/src/price-snapshot.ts");
const require = createRequire(join(repositoryRoot, "packages/tokens/package.json"));

/** The parts of the catalog that the snapshot needs. */
interface Provider {
  readonly id: string;
  readonly models: readonly ModelInfo[];
}
interface ModelInfo {
  readonly id: string;
  readonly match: MatchLogic;
  readonly prices: ModelPrice | readonly { readonly prices: ModelPrice; readonly constraint?: object }[];
}
type ModelPrice = Readonly<
  Record<string, number | { readonly base: number; readonly tiers: readonly Tier[] } | undefined>
>;
interface Tier {
  readonly start: number;
  readonly price: number;
}
type MatchLogic =
  | { readonly equals: string }
  | { readonly starts_with: string }
  | { readonly or: readonly MatchLogic[] }
  | { readonly and: readonly MatchLogic[] }
  | { readonly regex: string };

/** The companies whose own prices count, in this order: a later one adds only names that are not there yet. */
const vendors = [
  "anthropic",
  "openai",
  "google",
  "x-ai",
  "deepseek",
  "mistral",
  "moonshotai",
  "zai",
  "zhipuai",
  "minimax",
];
/** Qwen has no row of its own in the catalog. */
const lastVendor = { id: "openrouter", models: /^qwen3/ };

/** Models that no conversation is held with, and those that were withdrawn; each name is bytes in every bundle. */
const otherKinds =
  /embed|moderation|tts|transcribe|realtime|audio|image|ocr|live|voice|voxtral|whisper|davinci|curie|babbage|^ada|gpt-3|claude-[v12]|command|palm|gemini-(?:pro|flash|1)|-1\.5|mixtral|codex-mini|computer-use|vision|gemma|moonshot|saba|mistral-(?:7b|tiny)/;

const classes = ["input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok"] as const;

/** The rows of the snapshot: prices of each class, those of longer prompts, and the names that have them. */
async function priceRows(asOf: string): Promise<readonly string[]> {
  const { waitForUpdate } = (await import(require.resolve("@pydantic/genai-prices"))) as {
    readonly waitForUpdate: () => Promise<readonly Provider[] | null>;
  };
  const providers = (await waitForUpdate()) ?? [];
  const taken = new Set<string>();
  const namesByPrice = new Map<string, string[]>();
  for (const model of modelsOf(providers)) {
    const price = priceText(priceOn(model, asOf));
    if (price === null) continue;
    const names = shortest(namesOf(model)).filter((name) => !isTaken(name, taken));
    for (const name of names) taken.add(name);
    if (names.length > 0) namesByPrice.set(price, [...(namesByPrice.get(price) ?? []), ...names]);
  }
  return [...namesByPrice].map(([price, names]) => `${price}: ${names.join(" ")}`);
}

/** A cloud that sells the models of another company does not set their price. */
function isTaken(name: string, taken: ReadonlySet<string>): boolean {
  const plain = name.replace(/\*$/, "");
  return taken.has(plain) || taken.has(`${plain}*`);
}

function modelsOf(providers: readonly Provider[]): readonly ModelInfo[] {
  const byId = (id: string): readonly ModelInfo[] => providers.find((provider) => provider.id === id)?.models ?? [];
  const last = byId(lastVendor.id).filter(({ id }) => lastVendor.models.test(id));
  return [...vendors.flatMap(byId), ...last].filter(({ id }) => !id.includes(":") && !otherKinds.test(id));
}

/** The price of a day; prices of certain hours are left out, because the hour of a bill is the provider's. */
function priceOn({ prices }: ModelInfo, asOf: string): ModelPrice {
  if (!isDated(prices)) return prices;
  const valid = prices.filter(({ constraint }) => {
    if (constraint === undefined) return true;
    return "start_date" in constraint && String(constraint.start_date) <= asOf;
  });
  return valid.at(-1)?.prices ?? {};
}

function isDated(prices: ModelInfo["prices"]): prices is Exclude<ModelInfo["prices"], ModelPrice> {
  return Array.isArray(prices);
}

/** Null for a model that is not billed by tokens of text. */
function priceText(price: ModelPrice): string | null {
  const values = classes.map((name) => price[name]);
  if (values[0] === undefined || values[1] === undefined) return null;
  const starts = values.flatMap((value) => (typeof value === "object" ? value.tiers.map(({ start }) => start) : []));
  const steps = [-1, ...new Set(starts)].sort((one, other) => one - other);
  return steps
    .map((start) => {
      const texts = values.map((value) => {
        if (typeof value !== "object") return value;
        return value.tiers.findLast((tier) => tier.start <= start)?.price ?? value.base;
      });
      while (texts.at(-1) === undefined) texts.pop();
      return `${start === -1 ? "" : `>${start} `}${texts.map((text) => text ?? "").join("/")}`;
    })
    .join(" ");
}

/** A name with a star stands for every name that begins with it. */
function namesOf({ id, match }: ModelInfo): readonly string[] {
  return [...new Set([id, ...matched(match)].map(plainName))].filter((name) => !/\s/.test(name));
}

function plainName(name: string): string {
  return name
    .toLowerCase()
    .slice(name.lastIndexOf("/") + 1)
    .replaceAll(".", "-");
}

/** Leaves out a name that a shorter one with a star stands for, at most with a date behind it. */
function shortest(names: readonly string[]): readonly string[] {
  const starts = names.filter((name) => name.endsWith("*")).map((name) => name.slice(0, -1));
  const isCovered = (name: string): boolean =>
    starts.some(
      (start) =>
        name.startsWith(start) && /^(?:|-(?:latest|\d{8}|\d{4}-\d{2}-\d{2})\*?)$/.test(name.slice(start.length)),
    );
  const dated = /-(?:latest|\d{8}|\d{4}-\d{2}-\d{2})$/;
  return names.filter((name) => !isCovered(name) && !(dated.test(name) && names.includes(name.replace(dated, ""))));
}

function matched(match: MatchLogic): readonly string[] {
  if ("equals" in match) return [match.equals];
  if ("starts_with" in match) return [`${match.starts_with}*`];
  if ("or" in match) return match.or.flatMap(matched);
  return "and" in match ? match.and.flatMap(matched) : [];
}

async function snapshotModule(asOf: string): Promise<string> {
  const priced = await priceRows(asOf);
  const steps = [...new Set(priced.flatMap((row) => [...row.matchAll(/>(\d+)/g)].map(([, start]) => Number(start))))];
  const { version } = JSON.parse(
    readFileSync(join(repositoryRoot, "packages/tokens/node_modules/@pydantic/genai-prices/package.json"), "utf8"),
  ) as {
    readonly version: string;
  };
  return [
    `// Written by tools/write-prices.ts from @pydantic/genai-prices ${version}.`,
    "/** The day of the prices, as `YYYY-MM-DD`. */",
    `export const asOf = "${asOf}";`,
    "/** The lengths of prompts in tokens above which some price differs. */",
    `export const promptSteps: readonly number[] = [${steps.toSorted((one, other) => one - other).join(", ")}];`,
    "/** Prices in US dollars per million tokens: input/output/cache read/cache write/for one hour, `>` above a prompt. */",
    "export const rows: readonly string[] = [",
    ...priced.map((row) => `  ${JSON.stringify(row)},`),
    "];",
    "",
  ].join("\n");
}

if (import.meta.main) {
  const asOf = process.argv[2];
  if (asOf === undefined || !/^\d{4}-\d{2}-\d{2}$/.test(asOf))
    throw new RangeError("Name the day of the catalog: node tools/write-prices.ts YYYY-MM-DD");
  writeFileSync(file, await snapshotModule(asOf));
}
