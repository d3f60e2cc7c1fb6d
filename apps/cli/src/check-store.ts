import { createFinding, hasErrorCode, shellWord } from "@throughline/core";
import type { Finding, SessionStore } from "@throughline/core";
import { inspectStore } from "@throughline/inspect";
import type { CommandContext } from "./command.ts";
import { counted } from "./counted.ts";
import { openStore } from "./open-store.ts";
import { listSessions } from "@throughline/queries";
import { NewFindings } from "./new-findings.ts";
import { strangeStoreFiles } from "./strange-store-files.ts";

export interface StoreToCheck {
  /** Opens it; called once. */
  open(onFinding: (finding: Finding) => void): Promise<SessionStore>;
  /** The file of a store in one file. */
  readonly path: string | null;
  readonly isRepair: boolean;
  /** How the command names it, with a space before; empty for the store of `--store`. */
  readonly named: string;
}

/** What a log held that was lost is in no file that could be repaired. */
const logCodes: ReadonlySet<string> = new Set(["LOG_DAMAGED", "LOG_MISSING"]);

type Report = (findings: readonly Finding[]) => Promise<void>;

/**
 * Says what is wrong with a store, each thing once; damage is what is looked for, and ends nothing but the step that met it.
 * @returns false where a repair was asked for and nothing of a damaged store could be saved
 */
export async function checkStore(context: CommandContext, checked: StoreToCheck, report: Report): Promise<boolean> {
  const { output, scope, signal } = context;
  const newFindings = new NewFindings();
  // What the store notices by itself while it is read comes as an event; its own check may say the same again.
  let noticed: Finding[] = [];
  let isDamaged = false;
  let isRepairable = false;
  const take = async (found: readonly Finding[]): Promise<void> => {
    const fresh = newFindings.pick([...noticed, ...found]);
    noticed = [];
    const damage = fresh.filter(({ severity, repaired }) => severity === "error" && !repaired);
    isDamaged ||= damage.length > 0;
    isRepairable ||= damage.some(({ code }) => !logCodes.has(code));
    await report(fresh);
  };
  const step = async (findings: () => AsyncIterable<Finding>): Promise<void> => {
    try {
      for await (const finding of findings()) await take([finding]);
    } catch (error) {
      if (!hasErrorCode(error, "STORE_CORRUPT")) throw error;
      const path = error.details["path"];
      await take([createFinding("STORE_DAMAGED", error.message, { path: typeof path === "string" ? path : null })]);
    }
  };
  const onFinding = (finding: Finding): number => noticed.push(finding);
  const repair = { isFailed: false };
  const store = await checked.open(onFinding);
  if (checked.path !== null) await assertOwn(store);
  if (checked.named === "")
    for await (const finding of strangeStoreFiles(context)) {
      newFindings.addStrange(finding);
      await take([finding]);
    }
  if (checked.isRepair && store.maintenance === undefined)
    output.note(`The ${store.capabilities.name} store keeps nothing that could be repaired.`);
  else if (checked.isRepair) await step(() => repairs(context, store, checked, repair));
  const query = { namespace: scope.namespace, ...(scope.isAgentGiven ? { agentId: scope.agentId } : {}) };
  await step(() => inspectStore(store, { query, signal }));
  await take([]);
  if (isDamaged && checked.path !== null)
    noteWays(context, { ...checked, isRepair: checked.isRepair || !isRepairable }, checked.path);
  return !repair.isFailed;
}

/** A database of another program holds nothing to check or to repair. @throws {ThroughlineError} STORE_FOREIGN */
async function assertOwn(store: SessionStore): Promise<void> {
  try {
    await store.list({ limit: 1 });
  } catch (error) {
    // Whatever else is wrong is what the check is for.
    if (hasErrorCode(error, "STORE_FOREIGN")) throw error;
  }
}

/** What can be done about a damaged file. */
export function noteWays(
  { output }: CommandContext,
  { isRepair, named }: Pick<StoreToCheck, "isRepair" | "named">,
  path: string,
): void {
  if (!isRepair) output.note(`\`throughline doctor --repair${named}\` writes what can be read of it to a new file.`);
  output.note(`\`${restoring("FILE", path)}\` puts a backup in its place and keeps it.`);
}

function restoring(file: string, path: string): string {
  return `throughline restore-backup ${file} --yes --store ${shellWord(`sqlite:${path}`)}`;
}

/** A store in one file is repaired into another one beside it, which is looked into before anybody calls it repaired. */
async function* repairs(
  { host, output, signal }: CommandContext,
  store: SessionStore,
  { path }: StoreToCheck,
  repair: { isFailed: boolean },
): AsyncGenerator<Finding> {
  for await (const finding of store.maintenance?.repair({ signal }) ?? []) {
    // Whatever is damaged is followed by what became of it.
    repair.isFailed = path !== null && finding.code === "STORE_DAMAGED" && !finding.repaired;
    // What a note stands for is in the copy no more than in the damaged file.
    const isLost = finding.repaired && finding.code === "RECORD_MISSING";
    yield isLost ? { ...finding, repaired: false } : finding;
    const copy = finding.repaired && finding.code === "STORE_DAMAGED" && path !== null ? finding.path : null;
    if (copy === null || copy === path) continue;
    const { sessions, records, notes } = await contentOf(copy, host.workingDirectory);
    const missing = notes === 0 ? "" : `, and notes in the place of ${counted(notes, "record")}`;
    output.note(`Wrote ${copy}: ${counted(sessions, "session")}, ${counted(records, "record")}${missing}.`);
    output.note(`\`${restoring(shellWord(copy), path ?? "")}\` puts it in the place of the store, which is kept.`);
  }
}

/** What a repaired copy holds; what a fork shares counts in each session that shows it. */
async function contentOf(
  path: string,
  workingDirectory: string,
): Promise<{ readonly sessions: number; readonly records: number; readonly notes: number }> {
  let [sessions, records, notes] = [0, 0, 0];
  await using copy = await openStore(`sqlite:${path}`, { workingDirectory, create: false, recover: false });
  for await (const { ref } of listSessions(copy, { state: "any", sort: "key", limit: 1000 })) {
    sessions += 1;
    for await (const page of copy.read(ref, { payload: "head" })) {
      const lost = page.records.filter(({ id, side }) => side && id.startsWith("damaged:")).length;
      notes += lost;
      records += page.records.length - lost;
    }
  }
  return { sessions, records, notes };
}
