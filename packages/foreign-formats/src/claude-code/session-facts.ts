import type { Fields } from "@throughline/core/internal";
import { repositoryFields } from "../repository-fields.ts";

/** Collects the session's facts from its lines and from the path of its file. */
export class SessionFacts {
  hasBegun = false;
  spawnedBy: string | null = null;
  #sessionId: string | null = null;
  #agentId: string | null = null;
  readonly #entry = new Map<string, unknown>();
  readonly #names = { custom: "", agent: "" };
  readonly #strayTitles: ReadonlyMap<string, string>;
  #strayTitle = "";

  /**
   * @param strayTitles titles from the files of other sessions; each key is the id of a line in the session that the
   * title describes
   */
  constructor(path: string | null, strayTitles: ReadonlyMap<string, string> = new Map()) {
    this.#strayTitles = strayTitles;
    const parts = (path ?? "").split(/[/\\]/);
    const name = parts.at(-1) ?? "";
    // A continued session begins with lines of the earlier session, so the file's name states the session id.
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

  /** The first line of the conversation states whether the file belongs to a sub-agent. */
  begin({ isSidechain, agentId, sessionId }: Fields): void {
    if (this.hasBegun) return;
    this.hasBegun = true;
    if (isSidechain !== true) return;
    if (typeof agentId === "string" && agentName.test(agentId)) this.#agentId ??= agentId;
    if (this.#agentId !== null && typeof sessionId === "string") this.spawnedBy ??= sessionId;
  }

  /** @param isThere returns whether a line with that id came before */
  take(line: Fields, isThere: (uuid: unknown) => boolean): void {
    const { type, sessionId = line["session_id"], cwd, uuid } = line;
    if (typeof uuid === "string") this.#strayTitle = textOf(this.#strayTitles.get(uuid)) || this.#strayTitle;
    if (typeof sessionId === "string" && sessionId !== "") this.#sessionId ??= sessionId;
    if (typeof cwd === "string" && cwd !== "" && !this.#entry.has("cwd")) this.#entry.set("cwd", cwd);
    this.#branch(line["gitBranch"]);
    switch (type) {
      case "ai-title":
        return this.#title(line["aiTitle"]);
      case "summary":
        // The program often writes a summary into the file of another session, so the summary must name a line of this
        // file.
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

  /** The branch may change while the session goes on; the last one counts. */
  #branch(stated: unknown): void {
    if (stated === undefined || stated === this.#entry.get("branch")) return;
    const { branch } = repositoryFields(null, stated);
    if (branch !== undefined) this.#entry.set("branch", branch);
  }

  #title(title: unknown): void {
    if (textOf(title) === "") return;
    this.#entry.set("title", textOf(title));
    this.#entry.set("titleBy", "import");
  }

  /** A person's name for the session takes precedence over the name of an agent. */
  #label(): void {
    const label = this.#names.custom === "" ? this.#names.agent : this.#names.custom;
    if (label !== "") this.#entry.set("label", label);
  }
}

const sessionFile = /^([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})\.jsonl$/i;

/**
 * Such files lie at any depth below `<session>/subagents`. Older versions put them beside the session, so only the
 * lines state the parent session.
 */
const agentFile = /^agent-([A-Za-z0-9_-]{1,64})\.jsonl$/;
const agentName = /^[A-Za-z0-9_-]{1,64}$/;

function textOf(value: unknown): string {
  return typeof value === "string" ? value.trim() : "";
}
