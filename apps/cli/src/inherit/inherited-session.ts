import { isAbsolute, relative, resolve, sep } from "node:path";
import { sessionSettings } from "@throughline/config";
import type { SessionEntry } from "@throughline/core";
import { openclawState } from "@throughline/transfer/internal";
import type { CommandContext } from "../command.ts";

/**
 * True if the session comes from a location of `session.inherit`. With `enabled: true` the user has decided to continue
 * these sessions here.
 */
export function isInherited(context: CommandContext, entry: SessionEntry): boolean {
  const { inherit } = sessionSettings(context.config);
  if (inherit.enabled !== true) return false;
  const { path } = (entry["importedFrom"] ?? {}) as { readonly path?: unknown };
  return typeof path === "string" && inheritSources(context, inherit.source).some((source) => isWithin(source, path));
}

/** Returns OpenClaw's state directory and the configured source. */
export function inheritSources({ host, settings }: CommandContext, source: string): readonly string[] {
  const isNamed = settings.some(({ key, source: from }) => key === "session.inherit.source" && from !== "default");
  // A source that the user configures replaces the default.
  const paths = isNamed ? [source] : [openclawState(host.userHome), source];
  return paths.map((path) => resolve(path));
}

function isWithin(folder: string, path: string): boolean {
  const inner = relative(folder, path);
  return !isAbsolute(inner) && inner !== ".." && !inner.startsWith(`..${sep}`);
}
