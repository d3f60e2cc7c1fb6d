import { type Config, resolveConfig } from "@throughline/config";
import type { ResolveConfigOptions } from "../src/resolve-config.ts";
import type { Setting } from "../src/setting-set.ts";

/** What a test may say of where settings come from. */
export interface Written {
  /** The configuration file; an object is written as JSON, a line for each member. */
  readonly file?: unknown;
  readonly environment?: ResolveConfigOptions["environment"];
  readonly flags?: ResolveConfigOptions["flags"];
}

export const filePath = "/home/ada/.throughline/config.json";

export async function resolve({ file, environment = {}, flags = {} }: Written): Promise<Config> {
  const text = typeof file === "string" ? file : JSON.stringify(file, null, 2);
  return resolveConfig({
    userHome: "/home/ada",
    environment,
    flags,
    readFile: () => (file === undefined ? null : { path: filePath, text }),
  });
}

/** By key. */
export async function settingsOf(written: Written): Promise<ReadonlyMap<string, Setting>> {
  const { settings } = await resolve(written);
  return new Map(settings.map((setting) => [setting.key, setting]));
}

/** The values that somebody wrote, by key. */
export async function written(from: Written): Promise<Readonly<Record<string, unknown>>> {
  const { settings } = await resolve(from);
  const set = settings.filter(({ source }) => source !== "default");
  return Object.fromEntries(set.map(({ key, value }) => [key, value]));
}
