import { isAbsolute, relative, resolve, sep } from "node:path";
import { type Config, sessionSettings } from "@throughline/config";
import type { SessionEntry } from "@throughline/core";
import { openclawState } from "@throughline/transfer/internal";
import type { AgentContext } from "./agent-context.ts";

/**
 * True if the session comes from a location of `session.inherit`. With `enabled: true` the user has decided to continue
 * these sessions here.
 */
export function isInherited(context: AgentContext, entry: SessionEntry): boolean {
  const { path } = (entry["importedFrom"] ?? {}) as { readonly path?: unknown };
  // Few sessions are imports, and reading the settings takes far longer than this.
  if (typeof path !== "string") return false;
  const { inherit } = sessionSettings(context.config);
  return inherit.enabled === true && inheritSources(context, inherit.source).some((source) => isWithin(source, path));
}

/** Returns OpenClaw's state directory and the configured source. */
export function inheritSources({ config, userHome }: AgentContext, source: string): readonly string[] {
  // A source that the user configures replaces the default.
  const paths = isSourceNamed(config) ? [source] : [openclawState(userHome), source];
  return paths.map((path) => resolve(path));
}

/** True if the user configured the location of the other program's sessions. */
export function isSourceNamed({ settings }: Config): boolean {
  return settings.some(({ key, source }) => key === "session.inherit.source" && source !== "default");
}

function isWithin(folder: string, path: string): boolean {
  const inner = relative(folder, path);
  return !isAbsolute(inner) && inner !== ".." && !inner.startsWith(`..${sep}`);
}
