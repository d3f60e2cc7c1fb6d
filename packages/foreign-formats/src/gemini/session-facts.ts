import type { Fields } from "@throughline/core/internal";

/** Collects the session's facts from its headers and from the path of its file. */
export class SessionFacts {
  sessionId: string | null = null;
  spawnedBy: string | null = null;
  readonly #entry = new Map<string, unknown>();

  constructor(path: string | null) {
    const parts = (path ?? "").split(/[/\\]/);
    // Sub-agents lie in a folder that is named after the session that spawned them.
    const isBelow = parts.at(-3) === "chats" && !(parts.at(-1) ?? "").startsWith("session-");
    this.spawnedBy = isBelow ? (parts.at(-2) ?? null) : null;
  }

  get entry(): Readonly<Record<string, unknown>> {
    return Object.fromEntries(this.#entry);
  }

  take({ sessionId, summary, directories }: Fields): void {
    if (typeof sessionId === "string" && sessionId !== "") this.sessionId ??= sessionId;
    const [directory] = Array.isArray(directories) ? (directories as readonly unknown[]) : [];
    if (typeof directory === "string" && directory !== "" && !this.#entry.has("cwd")) this.#entry.set("cwd", directory);
    if (typeof summary !== "string" || summary.trim() === "") return;
    this.#entry.set("title", summary.trim());
    this.#entry.set("titleBy", "import");
  }
}
