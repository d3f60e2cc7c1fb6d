import { isAbsolute } from "node:path/posix";
import type { Finding } from "@throughline/core";
import type { RecordSource } from "@throughline/core/internal";
import type { ForeignReader, ForeignReaderOptions, ForeignUnit, UnitPlace } from "../foreign-format.ts";
import { UnitRecords, type RecordBody } from "../unit-records.ts";
import { lineKind, startMark, type AiderLine } from "./aider-lines.ts";

/** Creates a reader of a chat history. */
export function createAiderReader(options: ForeignReaderOptions): ForeignReader {
  return new AiderReader(options);
}

/** Each chat of a file begins an empty context: the program continues from the last one. */
class AiderReader implements ForeignReader {
  headId: string | null = null;
  readonly sessionId = null;
  readonly spawnedBy = null;
  readonly entry: Readonly<Record<string, unknown>>;
  readonly #records: UnitRecords;
  readonly #maxUnitBytes: number;
  /** The unit before: an import reads the beginning of one that has grown, and then all of it in its place. */
  #last: { readonly line: number; readonly headId: string | null } = { line: 0, headId: null };
  /** As the program's output says it. */
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

  push(unit: RecordSource, place: UnitPlace): ForeignUnit {
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

  /** Null for what no model sees. */
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

/** The lines of a turn, as the program reads them: without its mark, and without headings. */
function linesOf(text: string, kind: "user" | "assistant"): string {
  const lines = text.split(/(?<=\n)/).filter((line) => lineKind(line) === kind);
  return lines.map((line) => (kind === "user" ? line.slice("#### ".length) : line)).join("");
}

/** Local time without a zone, as if it were UTC. */
function startTime(line: string): string | undefined {
  const [, day, time] =
    /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)/.exec(line.slice(startMark.length, startMark.length + 40)) ?? [];
  return day === undefined || time === undefined ? undefined : `${day}T${time}Z`;
}
