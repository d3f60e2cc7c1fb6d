import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { objects, runHere } from "./harness.ts";

/** A transcript that was imported through the command line. */
export interface ImportedFile {
  readonly key: string;
  readonly sessionId: string;
  /** What the import printed of the file. */
  readonly source: Readonly<Record<string, unknown>>;
  readonly findingCodes: readonly string[];
}

type Context = Readonly<Record<string, unknown>> & {
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly repairs: readonly Readonly<Record<string, unknown>>[];
};

/** Writes a transcript of these lines, objects or texts, and imports it. */
export async function importLines(
  home: string,
  name: string,
  lines: readonly unknown[],
  key: string | null = null,
): Promise<ImportedFile> {
  const path = join(home, `${name}.jsonl`);
  const texts = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line)));
  writeFileSync(path, `${texts.join("\n")}\n`);
  const keyed = key === null ? [] : ["--key", key];
  const { stdout, stderr } = await runHere(home, ["import", path, "--json", ...keyed]);
  const [result] = objects(stdout);
  const [source] = (result?.["sources"] ?? []) as Readonly<Record<string, unknown>>[];
  if (source?.["state"] !== "imported") throw new Error(`${stdout}${stderr}`);
  const findingCodes = objects(stderr).flatMap(({ kind, code }) => (kind === "finding" ? [String(code)] : []));
  return { key: String(source["key"]), sessionId: String(source["sessionId"]), source, findingCodes };
}

/** What `context --json` prints of a session. */
export async function contextOf(home: string, key: string, provider: string): Promise<Context> {
  const { stdout, stderr } = await runHere(home, ["context", key, "--provider", provider, "--json"]);
  const [context] = objects(stdout);
  if (context === undefined) throw new Error(stderr);
  return context as Context;
}

/** The messages a provider would be sent of a transcript of these lines. */
export async function replay(
  home: string,
  name: string,
  lines: readonly unknown[],
  provider: string = "anthropic",
): Promise<Context> {
  const { key } = await importLines(home, name, lines, `agent:main:test:direct:${name}`);
  return contextOf(home, key, provider);
}

/** The records of a session as `show --raw --json` prints them. */
export async function recordsOf(
  home: string,
  key: string,
  ...options: readonly string[]
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const { stdout } = await runHere(home, ["show", key, "--raw", "--json", ...options]);
  return objects(stdout)
    .filter(({ kind }) => kind === "record")
    .map(({ record }) => record as Readonly<Record<string, unknown>>);
}
