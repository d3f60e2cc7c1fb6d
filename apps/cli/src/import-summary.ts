import { hasErrorCode, sessionRef, type SessionStore } from "@throughline/core";
import { givenName, resolveSession, shellWord } from "@throughline/core/internal";
import type { ImportSource } from "@throughline/transfer/internal";
import type { CommandContext } from "./command.ts";
import { counted } from "./counted.ts";
import { programName } from "./program-names.ts";

export class ImportSummary {
  readonly #imported = new Map<string, number>();
  #grown = 0;
  #example: { readonly agentId: string; readonly key: string } | null = null;

  take({
    state,
    format,
    agentId,
    key,
    archived,
  }: Pick<ImportSource, "state" | "format" | "agentId" | "key" | "archived">): void {
    if (state === "grown") this.#grown += 1;
    if (state !== "imported") return;
    const program = programName(format);
    this.#imported.set(program, (this.#imported.get(program) ?? 0) + 1);
    if (agentId !== null && key !== null && !archived) this.#example = { agentId, key };
  }

  get imported(): number {
    return [...this.#imported.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Returns for example `Claude Code 5, Codex 13, pi 2`, largest count first. */
  get programs(): string {
    const byProgram = [...this.#imported].toSorted(([, one], [, other]) => other - one);
    return byProgram.map(([program, count]) => `${program} ${count}`).join(", ");
  }

  async print(context: CommandContext, store: SessionStore): Promise<void> {
    if (context.output.isJson || this.imported === 0) return;
    const grown = this.#grown === 0 ? "" : `; ${counted(this.#grown, "session")} grown`;
    context.output.note(`Imported ${counted(this.imported, "session")}: ${this.programs}${grown}.`);
    await this.printCommands(context, store);
  }

  /** Prints three commands on a terminal and one in a script. */
  async printCommands(context: CommandContext, store: SessionStore): Promise<void> {
    const { host, output } = context;
    if (host.stderr.isTTY !== true) return output.note("Try: `throughline search WORDS`");
    const show = `throughline show ${await this.#exampleName(context, store)}`;
    output.note("  `throughline sessions` lists them");
    output.note("  `throughline search WORDS` finds words in all of them");
    output.note(`  \`${show}\` prints one`);
  }

  /** Prefers the session's title if it resolves to this session; otherwise its key. */
  async #exampleName({ scope, signal }: CommandContext, store: SessionStore): Promise<string> {
    if (this.#example === null) return "KEY";
    const { agentId, key } = this.#example;
    const state = await store.load(sessionRef({ ...this.#example, namespace: scope.namespace }), { signal });
    const title = state === null ? null : givenName(state.entry);
    // A backtick would end the printed command.
    if (state === null || title === null || /[`\n]/.test(title) || agentId !== scope.agentId) return shellWord(key);
    try {
      const found = await resolveSession(store, title, scope, { signal });
      return found.sessionId === state.sessionId ? shellWord(title) : shellWord(key);
    } catch (error) {
      if (!hasErrorCode(error, "SESSION_AMBIGUOUS", "SESSION_NOT_FOUND")) throw error;
      return shellWord(key);
    }
  }
}
