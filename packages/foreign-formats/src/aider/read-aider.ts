import { isAbsolute } from "node:path/posix";
import type { Finding } from "@throughline/core";
import type { RecordSource } from "@throughline/core/internal";
import type { ForeignReader, ForeignReaderOptions, ForeignItem, UnitPlace } from "../foreign-format.ts";
import { UnitRecords, type RecordBody } from "../unit-records.ts";
import { lineKind, startMark, type AiderLine } from "./aider-lines.ts";

export function createAiderReader(options: ForeignReaderOptions): ForeignReader {
  return new AiderReader(options);
}

/** Each chat of a file begins with an empty context, and the program continues the last chat. */
class AiderReader implements ForeignReader {
  headId: string | null = null;
  readonly sessionId = null;
  readonly spawnedBy = null;
  readonly entry: Readonly<Record<string, unknown>>;
  readonly #records: UnitRecords;
  readonly #maxUnitBytes: number;
  /**
   * An import may read the beginning of an item, and later the grown item at the same line. The second read replaces
   * the first.
   */
  #last: { readonly line: number; readonly headId: string | null } = { line: 0, headId: null };
  /** The program's output states the model at the start of a chat, and the replies do not. */
  #model: string | null = null;

  constructor(options: ForeignReaderOptions) {
    this.#records = new UnitRecords("aider", options);
    this.#maxUnitBytes = options.maxUnitBytes ?? Infinity;
    const folder = options.path?.replace(/[/\\][^/\\]{0,300}$/, "") ?? "";
    this.entry = isAbsolute(folder) ? { cwd: folder } : {};
  }

  get findings(): readonly Finding[] {
    return this.#records.log.findings;
  }

  push(unit: RecordSource, place: UnitPlace): ForeignItem {
    if ((place.sizeBytes ?? unit.length) > this.#maxUnitBytes)
      return this.#records.unparsed("too-long", place, this.headId);
    const text = (typeof unit === "string" ? unit : new TextDecoder().decode(unit)).replace(/^\uFEFF/, "");
    const kind = lineKind(text);
    const timestamp = this.#records.timestamp(kind === "start" ? startTime(text) : undefined);
    const at = { id: this.#records.claim(undefined, place), timestamp };
    if (this.#last.line === place.line) this.headId = this.#last.headId;
    this.#last = { line: place.line, headId: this.headId };
    const body = this.#body(kind, text);
    if (body === null)
      return this.#records.side(kind, kind === "start" ? {} : { text }, { ...at, parentId: this.headId });
    const opened = this.#records.open({ ...at, headId: this.headId });
    opened.add(body);
    this.headId = opened.headId;
    return opened.close();
  }

  finish(): readonly Finding[] {
    this.#records.log.finish();
    return this.findings;
  }

  /** Null means that a model gets no part of the item. */
  #body(kind: AiderLine, text: string): RecordBody | null {
    if (kind === "start") {
      this.#model = null;
      return this.headId === null ? null : { type: "reset", reason: "aider.chat" };
    }
    if (kind === "tool") this.#model ??= /^> (?:Main model|Model): (\S{1,100})/m.exec(text.slice(0, 4096))?.[1] ?? null;
    if (kind !== "user" && kind !== "assistant") return null;
    const said = linesOf(text, kind);
    if (said.trim() === "") return null;
    if (kind === "user") return { type: "message", message: { role: "user", content: said } };
    const author = this.#model === null ? {} : { model: this.#model };
    return {
      type: "message",
      message: { role: "assistant", content: [{ type: "text", text: said }], ...author, stopReason: "stop" },
    };
  }
}

/** Aider ignores the marks and the headings of a turn, so they are removed. */
function linesOf(text: string, kind: "user" | "assistant"): string {
  const lines = text.split(/(?<=\n)/).filter((line) => lineKind(line) === kind);
  return lines.map((line) => (kind === "user" ? line.slice("#### ".length) : line)).join("");
}

/** The file states local time without a zone, so the time is read as UTC. */
function startTime(line: string): string | undefined {
  const [, day, time] =
    /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)/.exec(line.slice(startMark.length, startMark.length + 40)) ?? [];
  return day === undefined || time === undefined ? undefined : `${day}T${time}Z`;
}
