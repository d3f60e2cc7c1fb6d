import { readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { StoredRecord } from "@throughline/core";
import { buildContext } from "@throughline/history";
import { historyTargets } from "../src/history-targets.ts";
import type { TargetName } from "../src/provider-mappings.ts";
import { corpusFolder } from "./corpus.ts";

/** Every transcript in version 3 that the corpus holds, by its path. */
export function corpusTranscripts(): readonly string[] {
  const folders = ["golden", "openclaw-sqlite-v23/source-sessions", "openclaw-legacy-variants/agents/main/sessions"];
  return folders.flatMap((folder) =>
    readdirSync(join(corpusFolder ?? "", folder))
      .filter((name) => name.endsWith(".jsonl"))
      .map((name) => join(folder, name)),
  );
}

/** True when every cut point is to be looked at, which takes minutes. */
const isFullRun: boolean = process.env["THROUGHLINE_CUTS"] === "all";

/** Each length for a short log; for a long one the first and last fifty, and every so many between. */
function cutPoints(length: number): readonly number[] {
  const step = isFullRun ? 1 : Math.max(1, Math.floor(length / 25));
  const points: number[] = [];
  for (let cut = 1; cut <= length; cut++) if (cut <= 20 || cut > length - 20 || cut % step === 0) points.push(cut);
  return points;
}

/** What a provider would refuse about a log at its cut points; a throw counts. */
export function violationsOf(name: TargetName, records: readonly StoredRecord[]): readonly string[] {
  const target = historyTargets.get(name);
  if (target === undefined) throw new Error(`no target ${name}`);
  return cutPoints(records.length).flatMap((cut) => {
    const context = buildContext(records.slice(0, cut));
    const { messages } = target.render(context);
    const found = messages.length === 0 ? [] : target.validate(messages, context.model?.modelId ?? null);
    return found.map(({ rule, path }) => `cut ${cut}: ${rule} at ${path}`);
  });
}
