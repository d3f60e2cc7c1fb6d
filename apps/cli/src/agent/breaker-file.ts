import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { systemRandom } from "@throughline/core/internal";
import { createSummarizerBreakers } from "@throughline/summarizer-providers";
import type { SummarizerBreakers } from "@throughline/summarizer-providers/internal";
import { mostFileBytes, readBoundedFile } from "@throughline/config/internal";

export interface BreakerFileOptions {
  /** Of the home; made with the first failure of a summarizer. */
  readonly path: string;
  readonly threshold: number;
  readonly resetMs: number;
  /** Told once, when what happened cannot be kept. */
  readonly onUnwritable: (error: unknown) => void;
}

/**
 * Breakers whose state outlives the process: a summarizer that did not work is not waited for again by the next command.
 * A file that cannot be read counts as none, because a breaker only saves time.
 */
export function openBreakers(options: BreakerFileOptions): SummarizerBreakers {
  const { path, threshold, resetMs, onUnwritable } = options;
  let hasFailed = false;
  return createSummarizerBreakers({
    threshold,
    resetMs,
    snapshot: readSnapshot(path),
    onChange: (snapshot) => {
      try {
        replaceFile(path, `${JSON.stringify(snapshot)}\n`);
      } catch (error) {
        if (!hasFailed) onUnwritable(error);
        hasFailed = true;
      }
    },
  });
}

function readSnapshot(path: string): unknown {
  try {
    return JSON.parse(readBoundedFile(path, { what: "state", mostBytes: mostFileBytes })) as unknown;
  } catch {
    // Not there yet, or not what we wrote: every summarizer is asked again, and the file is written anew.
    return null;
  }
}

/** Whole or not at all: two commands may write at once, and either is good. */
function replaceFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.${systemRandom.uuid()}.tmp`;
  writeFileSync(temporary, text, { mode: 0o600 });
  renameSync(temporary, path);
}
