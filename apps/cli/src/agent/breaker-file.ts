import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { systemRandom } from "@throughline/core/internal";
import { createSummarizerBreakers } from "@throughline/summarizer-providers";
import type { SummarizerBreakers } from "@throughline/summarizer-providers/internal";
import { mostFileBytes, readBoundedFile } from "@throughline/config/internal";

export interface BreakerFileOptions {
  /** Names a file in the home; it is created at the first failure of a summarizer. */
  readonly path: string;
  readonly threshold: number;
  readonly resetMs: number;
  /** Runs once, when the state cannot be written. */
  readonly onUnwritable: (error: unknown) => void;
}

/**
 * Keeps breaker state across processes, so that the next command does not wait for a failed summarizer again. An
 * unreadable file counts as empty, because a breaker only saves time.
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
    // The file is missing or damaged. Every summarizer is asked again, and the file is rewritten.
    return null;
  }
}

/** Replaces the file in one step, because two commands may write at once and either state is valid. */
function replaceFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.${systemRandom.uuid()}.tmp`;
  writeFileSync(temporary, text, { mode: 0o600 });
  renameSync(temporary, path);
}
