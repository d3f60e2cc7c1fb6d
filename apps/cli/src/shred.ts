import { type SessionRef, type SessionStore, ThroughlineError } from "@throughline/core";
import { systemRandom } from "@throughline/core/internal";
import type { Encryption, ErasureProof } from "@throughline/encryption";
import { assertNoFile, writeNewFile } from "@throughline/transfer/internal";
import type { CommandContext } from "./command.ts";
import { counted } from "./counted.ts";
import { usageError } from "./error-report.ts";
import { namedPath } from "./named-path.ts";
import { jsonLine } from "./terminal-safe.ts";
import { waitForTurn } from "./wait-for-turn.ts";

export interface ShredOptions {
  readonly shred?: boolean;
  readonly keepForks?: boolean;
  readonly proof?: string;
  readonly reason?: string;
}

interface Purged {
  readonly ref: SessionRef;
  readonly sessionId: string;
}

/** Destroys the keys of what a command deletes, so that backups of the store do not have it either. */
export interface Shredding {
  readonly encryption: Encryption;
  readonly reason: string;
  readonly keepForks: boolean;
  readonly proofPath: string | null;
}

/**
 * Returns null without `--shred`. Everything that may be refused is refused here, before anything is deleted.
 * @throws {ThroughlineError} USAGE, EXPORT_EXISTS
 */
export async function shreddingOf(
  context: CommandContext,
  { shred, proof, reason, keepForks = false }: ShredOptions,
): Promise<Shredding | null> {
  if (shred !== true) {
    if (proof !== undefined || reason !== undefined || keepForks)
      throw usageError("--proof, --reason and --keep-forks need --shred.");
    return null;
  }
  const encryption = await context.storeParts.codecFor(context.storeUrl);
  if (encryption === null)
    throw usageError("--shred destroys keys, and this store is not encrypted.", {}, "Delete with --purge instead.");
  const proofPath = proof === undefined ? null : namedPath(context.host, proof);
  if (proofPath !== null) await assertNoFile(proofPath);
  return { encryption, reason: reason ?? "on request", keepForks, proofPath };
}

/**
 * Erases sessions that `remove` purges. It calls `onPurged` for each. What an interruption leaves is done by the next
 * command that writes to the store.
 * @throws {ThroughlineError} SESSION_SHARED, INPUT_INVALID for a keyring without keys of sessions, and what `remove` throws
 */
export async function shredSessions(
  context: CommandContext,
  store: SessionStore,
  { encryption, reason, keepForks }: Shredding,
  refs: readonly SessionRef[],
  remove: (onPurged: (session: Purged) => void) => Promise<unknown>,
): Promise<ErasureProof> {
  for (const ref of refs) await waitForTurn(store, ref, context);
  const { beginErasure } = await import("@throughline/encryption/internal");
  const begun = await beginErasure(store, encryption, refs, { reason, keepForks });
  const purged: Purged[] = [];
  try {
    await remove((session) => purged.push(session));
  } catch (error) {
    // After an unknown outcome the session may be gone, so the next command looks, and destroys the key.
    if (!ThroughlineError.isInstance(error) || error.outcome !== "unknown") await begun.finish(purged);
    throw error;
  }
  return begun.finish(purged);
}

/** Writes the proof to the file of `--proof`, or prints it, and says what the keys do not reach. */
export async function tellProof(
  { output }: CommandContext,
  { proofPath }: Shredding,
  proof: ErasureProof,
): Promise<void> {
  if (proofPath !== null) {
    const text = Buffer.from(`${JSON.stringify(proof, null, 2)}\n`);
    await writeNewFile(proofPath, [text], systemRandom);
    output.note(`The proof of deletion is in ${proofPath}. \`throughline encryption check FILE\` checks it.`);
  } else if (!output.isJson) await output.line(jsonLine(proof));
  output.note(
    `${counted(proof.keyIds.length, "key")} destroyed: no backup of the store can be read for it. A copy of the keyring from before, with its main key, still can: replace such copies now.`,
  );
}
