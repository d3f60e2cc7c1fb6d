import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";

type Entries = Record<string, Record<string, unknown>>;

/** A sessions folder as OpenClaw uses it, and what OpenClaw does there. */
export class OpenClawFolder {
  readonly folder: string;
  #count = 0;
  #actedAtMs = 0;

  constructor(root: string) {
    this.folder = `${root}/agents/main/sessions`;
    mkdirSync(this.folder, { recursive: true });
  }

  path(name: string): string {
    return `${this.folder}/${name}`;
  }

  get entries(): Entries {
    const path = this.path("sessions.json");
    return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Entries) : {};
  }

  /** Begins a session under the key, whatever had it before; without a text it has no transcript yet. */
  begin(
    key: string,
    sessionId: string,
    text: string | null,
    entry: object = {},
    name: string = `${sessionId}.jsonl`,
  ): void {
    this.#change((entries) => (entries[key] = { sessionId, updatedAt: this.#nextMs(), ...entry }));
    if (text !== null) this.say(name, sessionId, text);
  }

  /** Adds a message to a transcript, which gets its header with the first. */
  say(name: string, sessionId: string, text: string): void {
    const path = this.path(name);
    const timestamp = new Date(this.#nextMs()).toISOString();
    const header = { type: "session", version: 3, id: sessionId, timestamp, cwd: "/" };
    if (!existsSync(path)) writeFileSync(path, `${JSON.stringify(header)}\n`);
    const id = `theirs-${sessionId}-${++this.#count}-${text}`;
    const line = { type: "message", id, parentId: null, timestamp, message: { role: "user", content: text } };
    appendFileSync(path, `${JSON.stringify(line)}\n`);
  }

  edit(key: string, set: object, unset: readonly string[] = []): void {
    this.#change((entries) => {
      const entry = { ...entries[key], ...set, updatedAt: this.#nextMs() } as Record<string, unknown>;
      for (const field of unset) delete entry[field];
      entries[key] = entry;
    });
  }

  drop(key: string): void {
    this.#change((entries) => delete entries[key]);
  }

  /** Returns the name that the transcript has afterwards. */
  putAside(name: string, why: "reset" | "deleted"): string {
    const aside = `${name}.${why}.${new Date().toISOString().replaceAll(":", "-")}`;
    renameSync(this.path(name), this.path(aside));
    return aside;
  }

  takeBack(aside: string, name: string): void {
    renameSync(this.path(aside), this.path(name));
  }

  /** Returns a later time for each act, so that their order is known. */
  #nextMs(): number {
    let nowMs = Date.now();
    while (nowMs <= this.#actedAtMs) nowMs = Date.now();
    this.#actedAtMs = nowMs;
    return nowMs;
  }

  #change(change: (entries: Entries) => unknown): void {
    const { entries } = this;
    change(entries);
    const path = this.path("sessions.json");
    writeFileSync(`${path}.tmp`, JSON.stringify(entries, null, 2));
    renameSync(`${path}.tmp`, path);
  }
}
