import type { Fields } from "@throughline/core/internal";

/** Gathers what the lines, and the place of their file, say of the session. */
export class SessionFacts {
  /** Whether a line of the conversation was there. */
  hasBegun = false;
  spawnedBy: string | null = null;
  #sessionId: string | null = null;
  #agentId: string | null = null;
  readonly #entry = new Map<string, unknown>();
  readonly #names = { custom: "", agent: "" };
  readonly #strayTitles: ReadonlyMap<string, string>;
  #strayTitle = "";

  /** @param strayTitles titles from the files of other sessions, by the id of a line of the session that they are of */
  constructor(path: string | null, strayTitles: ReadonlyMap<string, string> = new Map()) {
    this.#strayTitles = strayTitles;
    const parts = (path ?? "").split(/[/\\]/);
    const name = parts.at(-1) ?? "";
    // A session that continues another one begins with lines of that one: the name of its file counts.
    this.#sessionId = sessionFile.exec(name)?.[1] ?? null;
    this.#agentId = agentFile.exec(name)?.[1] ?? null;
    const at = parts.lastIndexOf("subagents");
    if (this.#agentId !== null && at > 0) this.spawnedBy = parts[at - 1] ?? null;
  }

  get sessionId(): string | null {
    if (this.#agentId === null) return this.#sessionId;
    return this.spawnedBy === null ? `agent-${this.#agentId}` : `${this.spawnedBy}.agent-${this.#agentId}`;
  }

  get entry(): Readonly<Record<string, unknown>> {
    const title = this.#strayTitle === "" ? {} : { title: this.#strayTitle, titleBy: "import" };
    return { ...title, ...Object.fromEntries(this.#entry) };
  }

  /** Takes a line of the conversation. The first one says whether the file is a sub-agent's own. */
  begin({ isSidechain, agentId, sessionId }: Fields): void {
    if (this.hasBegun) return;
    this.hasBegun = true;
    if (isSidechain !== true) return;
    if (typeof agentId === "string" && agentName.test(agentId)) this.#agentId ??= agentId;
    if (this.#agentId !== null && typeof sessionId === "string") this.spawnedBy ??= sessionId;
  }

  /** @param isThere whether a line of that id came before */
  take(line: Fields, isThere: (uuid: unknown) => boolean): void {
    const { type, sessionId = line["session_id"], cwd, uuid } = line;
    if (typeof uuid === "string") this.#strayTitle = textOf(this.#strayTitles.get(uuid)) || this.#strayTitle;
    if (typeof sessionId === "string" && sessionId !== "") this.#sessionId ??= sessionId;
    if (typeof cwd === "string" && cwd !== "" && !this.#entry.has("cwd")) this.#entry.set("cwd", cwd);
    switch (type) {
      case "ai-title":
        return this.#title(line["aiTitle"]);
      case "summary":
        // Often written into the file of another session than it is of.
        if (isThere(line["leafUuid"])) this.#title(line["summary"]);
        return;
      case "custom-title":
        this.#names.custom = textOf(line["customTitle"]);
        return this.#label();
      case "agent-name":
        this.#names.agent = textOf(line["agentName"]);
        return this.#label();
      case "relocated":
        if (typeof line["relocatedCwd"] === "string") this.#entry.set("cwd", line["relocatedCwd"]);
    }
  }

  #title(title: unknown): void {
    if (textOf(title) === "") return;
    this.#entry.set("title", textOf(title));
    this.#entry.set("titleBy", "import");
  }

  /** What a person called it goes before the name of an agent. */
  #label(): void {
    const label = this.#names.custom === "" ? this.#names.agent : this.#names.custom;
    if (label !== "") this.#entry.set("label", label);
  }
}

const sessionFile = /^([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})\.jsonl$/i;

/** At any depth below `<session>/subagents`; in older versions beside the session, and only its lines say whose it is. */
const agentFile = /^agent-([A-Za-z0-9_-]{1,64})\.jsonl$/;
const agentName = /^[A-Za-z0-9_-]{1,64}$/;

function textOf(value: unknown): string {
  return typeof value === "string" ? value.trim() : "";
}
