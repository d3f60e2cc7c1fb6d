import { isFields, type Fields } from "@throughline/core/internal";
import { repositoryFields } from "../repository-fields.ts";

/** Collects the session's facts from its first header and from the name of its file. */
export class CodexFacts {
  sessionId: string | null;
  spawnedBy: string | null = null;
  provider: string = "openai";
  readonly #entry = new Map<string, unknown>();
  #hasHeader = false;

  constructor(path: string | null) {
    const name = (path ?? "").split(/[/\\]/).at(-1) ?? "";
    this.sessionId = rolloutFile.exec(name)?.[1] ?? null;
  }

  get entry(): Readonly<Record<string, unknown>> {
    return Object.fromEntries(this.#entry);
  }

  /** Only the first header counts. A fork, or the session of a sub-agent, has its parent's header after its own. */
  take(meta: Fields): void {
    if (this.#hasHeader) return;
    this.#hasHeader = true;
    const id = meta["id"] ?? meta["session_id"];
    const { cwd, source, model_provider: provider } = meta;
    if (typeof id === "string" && id !== "") this.sessionId = id;
    if (typeof cwd === "string" && cwd !== "") this.#entry.set("cwd", cwd);
    const git = isFields(meta["git"]) ? meta["git"] : {};
    const fields = Object.entries(repositoryFields(git["repository_url"], git["branch"]));
    for (const [name, value] of fields) this.#entry.set(name, value);
    if (typeof provider === "string" && provider !== "") this.provider = provider;
    this.spawnedBy = parentOf(source);
  }
}

/** Codex names the files `rollout-<time>-<id>.jsonl` with a UUID as id, so the name states the session. */
const rolloutFile: RegExp =
  /^rollout-\d{4}-\d\d-\d\d(?:T[0-9-]{8})?-([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})\.json(?:l|l\.zst)?$/i;

function parentOf(source: unknown): string | null {
  const agent = isFields(source) ? source["subagent"] : null;
  const spawn = isFields(agent) ? agent["thread_spawn"] : null;
  const parent = isFields(spawn) ? spawn["parent_thread_id"] : null;
  return typeof parent === "string" && parent !== "" ? parent : null;
}
