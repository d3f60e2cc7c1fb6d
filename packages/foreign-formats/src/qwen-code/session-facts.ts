import { isFields, type Fields } from "@throughline/core/internal";

const agentName = /^[A-Za-z0-9_-]{1,200}$/;
const sessionFile = /^([0-9a-fA-F-]{32,36})\.jsonl$/;

/** Collects the session's facts from its lines and from the name of its file. */
export class SessionFacts {
  spawnedBy: string | null = null;
  #sessionId: string | null;
  #agentId: string | null = null;
  #hasBegun = false;
  readonly #entry = new Map<string, unknown>();

  constructor(path: string | null) {
    const name = (path ?? "").split(/[/\\]/).at(-1) ?? "";
    this.#sessionId = sessionFile.exec(name)?.[1] ?? null;
  }

  get sessionId(): string | null {
    if (this.#agentId === null) return this.#sessionId;
    return `${this.#sessionId ?? ""}.agent-${this.#agentId}`;
  }

  get entry(): Readonly<Record<string, unknown>> {
    return Object.fromEntries(this.#entry);
  }

  take(line: Fields): void {
    const { sessionId, cwd } = line;
    if (typeof sessionId === "string" && sessionId !== "") this.#sessionId ??= sessionId;
    if (typeof cwd === "string" && cwd !== "" && !this.#entry.has("cwd")) this.#entry.set("cwd", cwd);
    if (!this.#hasBegun) this.#begin(line);
    const payload = isFields(line["systemPayload"]) ? line["systemPayload"] : {};
    if (line["subtype"] === "custom_title") this.#name(payload);
    const { parentSessionId } = payload;
    if (line["subtype"] === "parent_session" && typeof parentSessionId === "string" && parentSessionId !== "")
      this.spawnedBy ??= parentSessionId;
  }

  /** A sub-agent has a file of its own, whose lines state the session that started it. */
  #begin({ isSidechain, agentId, sessionId }: Fields): void {
    this.#hasBegun = true;
    if (isSidechain !== true || typeof agentId !== "string" || !agentName.test(agentId)) return;
    if (typeof sessionId !== "string" || sessionId === "") return;
    this.#agentId = agentId;
    this.spawnedBy = sessionId;
  }

  /** A title without a source is a person's, as in the program. */
  #name({ customTitle, titleSource }: Fields): void {
    const name = typeof customTitle === "string" ? customTitle.trim() : "";
    if (name === "") return;
    if (titleSource !== "auto") {
      this.#entry.set("label", name);
      return;
    }
    this.#entry.set("title", name);
    this.#entry.set("titleBy", "import");
  }
}
