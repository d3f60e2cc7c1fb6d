/**
 * A remedy without the clauses that name what is being run: who has just been told by `doctor` that something is wrong is
 * not helped by "run doctor". What stays is said as it stands. With options of its own it is another command.
 */
export function withoutSelfAdvice(remedy: string, command: string): string {
  const self = new RegExp(`(?:^|[\\s\`])${command.replaceAll("-", "\\-")}(?![\\w-])(?! --)`);
  const clauses = remedy.split(/(?<=[.;])\s+/);
  const kept = clauses.filter((clause) => !(isAdvice(clause) && self.test(clause)));
  if (kept.length === clauses.length) return remedy;
  const text = kept.join(" ").replace(/;$/, ".");
  return text === "" ? "The message says what is known of it." : text.charAt(0).toUpperCase() + text.slice(1);
}

/** A word like "copy" or "show" is a command only where it is written as one. */
function isAdvice(clause: string): boolean {
  return /`throughline |\bdoctor --repair\b/.test(clause);
}
