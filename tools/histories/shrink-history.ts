import type { History, HistoryStep } from "./history-steps.ts";

/** A step without what it can do without. */
function* simplerSteps(step: HistoryStep): Generator<HistoryStep> {
  if (step.kind !== "append") return;
  const optional = ["entry", "idempotencyKey", "expect", "window", "rewind", "turn", "durability", "repeat"] as const;
  for (const name of optional) {
    const { [name]: taken, ...rest } = step;
    if (taken !== undefined) yield rest;
  }
  for (const at of step.drafts.keys()) yield { ...step, drafts: step.drafts.toSpliced(at, 1) };
  for (const [at, draft] of step.drafts.entries()) {
    const plain = { form: "fields", type: draft.type, fields: {} } as const;
    if (Object.keys(draft.fields).length > 0 || draft.form !== "fields")
      yield { ...step, drafts: step.drafts.with(at, plain) };
  }
}

/**
 * The shortest history it finds in the time that still fails: halves, quarters and so on down to single steps are left out,
 * then parts of steps. `fails` says whether what a history shows is what the first one showed.
 */
export async function shrinkHistory(
  history: History,
  fails: (history: History) => Promise<boolean>,
  isTimeLeft: () => boolean,
): Promise<History> {
  let best = history;
  const attempt = async (steps: readonly HistoryStep[]): Promise<boolean> => {
    const shorter = { ...best, steps };
    const isSame = await fails(shorter);
    if (isSame) best = shorter;
    return isSame;
  };
  for (let size = Math.ceil(best.steps.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < best.steps.length && isTimeLeft();) {
      if (!(await attempt(best.steps.toSpliced(at, size)))) at += size;
    }
  }
  for (const at of best.steps.keys()) {
    for (let isSimpler = true; isSimpler && isTimeLeft();) {
      isSimpler = false;
      for (const step of simplerSteps(best.steps[at] as HistoryStep)) {
        isSimpler = await attempt(best.steps.with(at, step));
        if (isSimpler || !isTimeLeft()) break;
      }
    }
  }
  return best;
}
