import { getJson } from "../api.ts";
import type { OutlineJson } from "../json.ts";
import { keySegment, type SessionPlace } from "../router.ts";

export function sessionPath({ key }: SessionPlace, rest: string = ""): string {
  return `/sessions/${keySegment(key)}${rest}`;
}

export function placeQuery({ agent, archive }: SessionPlace): {
  readonly agent: string | null;
  readonly archive: string | null;
} {
  return { agent, archive };
}

/** Holds one column of numbers. It grows by whole parts. */
class Column<Numbers extends Int32Array | Float64Array | Uint16Array | Uint8Array> {
  values: Numbers;
  readonly #make: (length: number) => Numbers;

  constructor(make: (length: number) => Numbers) {
    this.#make = make;
    this.values = make(0);
  }

  grow(by: number): void {
    const longer = this.#make(this.values.length + by);
    longer.set(this.values);
    this.values = longer;
  }

  at(index: number): number {
    return this.values[index] ?? 0;
  }
}

const none = 0xffff;
const unknownParent = -1;

/** Gives names numbers, in the order in which they come. */
class Names {
  readonly list: string[] = [];
  readonly #places = new Map<string, number>();

  place(name: string): number {
    const known = this.#places.get(name);
    if (known !== undefined) return known;
    this.#places.set(name, this.list.length);
    return this.list.push(name) - 1;
  }
}

/**
 * Holds what records a session has, without their contents, in the order of their seq. A million records take 27 MB, as
 * objects they would take 100.
 */
export class SessionOutline {
  count = 0;
  sessionId: string = "";
  lastSeq = 0;
  readonly #names = { type: new Names(), role: new Names(), tool: new Names() };
  readonly #seq = new Column((length) => new Int32Array(length));
  readonly #parent = new Column((length) => new Int32Array(length));
  readonly #type = new Column((length) => new Uint16Array(length));
  readonly #role = new Column((length) => new Uint16Array(length));
  readonly #tool = new Column((length) => new Uint16Array(length));
  readonly #side = new Column((length) => new Uint8Array(length));
  readonly #bytes = new Column((length) => new Int32Array(length));
  readonly #tsMs = new Column((length) => new Float64Array(length));

  take({ names, columns, lastSeq, sessionId }: OutlineJson): void {
    const start = this.count;
    const added = columns.seq.length;
    for (const column of [
      this.#seq,
      this.#parent,
      this.#type,
      this.#role,
      this.#tool,
      this.#side,
      this.#bytes,
      this.#tsMs,
    ])
      column.grow(added);
    const placed = (of: "type" | "role" | "tool", place: number | null | undefined): number => {
      const name = place === null || place === undefined ? undefined : names[of][place];
      return name === undefined ? none : this.#names[of].place(name);
    };
    let seq = 0;
    let timeMs = 0;
    for (let index = 0; index < added; index++) {
      const at = start + index;
      seq += columns.seq[index] ?? 0;
      const parent = columns.parent[index] ?? null;
      const step = columns.tsMs[index] ?? null;
      if (step !== null) timeMs += step;
      this.#seq.values[at] = seq;
      this.#parent.values[at] = parent === null ? unknownParent : parent === 0 ? 0 : seq - parent;
      this.#type.values[at] = placed("type", columns.type[index]);
      this.#role.values[at] = placed("role", columns.role[index]);
      this.#tool.values[at] = placed("tool", columns.tool[index]);
      this.#side.values[at] = columns.side[index] ?? 0;
      this.#bytes.values[at] = columns.bytes[index] ?? 0;
      this.#tsMs.values[at] = step === null ? Number.NaN : timeMs;
    }
    this.count += added;
    this.sessionId = sessionId;
    this.lastSeq = lastSeq;
  }

  /** Is the seq of the newest record that is known; 0 before the first part. */
  get lastLoaded(): number {
    return this.#seq.at(this.count - 1);
  }

  seqAt(index: number): number {
    return this.#seq.at(index);
  }

  roleAt(index: number): string | null {
    return this.#names.role.list[this.#role.at(index)] ?? null;
  }

  typeAt(index: number): string {
    return this.#names.type.list[this.#type.at(index)] ?? "";
  }

  toolAt(index: number): string | null {
    return this.#names.tool.list[this.#tool.at(index)] ?? null;
  }

  isSideAt(index: number): boolean {
    return this.#side.at(index) === 1;
  }

  bytesAt(index: number): number {
    return this.#bytes.at(index);
  }

  tsMsAt(index: number): number | null {
    const value = this.#tsMs.at(index);
    return Number.isNaN(value) ? null : value;
  }

  /** Returns the place of the last row whose seq is at most `seq`; -1 before the first. */
  indexOf(seq: number): number {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#seq.at(middle) <= seq) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** Marks the rows that the conversation up to `headSeq` contains. Side records count as part of it. */
  onBranch(headSeq: number): Uint8Array {
    const marks = new Uint8Array(this.count);
    let index = this.indexOf(headSeq);
    while (index >= 0 && marks[index] !== 1) {
      marks[index] = 1;
      const parent = this.#parent.at(index);
      if (parent === 0) break;
      // A parent that is not known lies before the rows that were asked for.
      index = parent === unknownParent ? index - 1 : this.indexOf(parent);
    }
    for (let at = 0; at < this.count; at++) if (this.isSideAt(at)) marks[at] = 1;
    return marks;
  }
}

/** The server reads 50,000 rows for a second, and a reader sees 20. */
const firstRows = 2000;

/** Loads the outline part by part, so that a long session shows its first rows before its last ones are known. */
export async function* loadOutline(
  place: SessionPlace,
  outline: SessionOutline,
  atSeq: number,
  signal: AbortSignal,
): AsyncGenerator<SessionOutline, void, void> {
  let toSeq: number | null = outline.count === 0 && atSeq < firstRows ? firstRows : null;
  for (;;) {
    const fromSeq = outline.lastLoaded + 1;
    const query = { ...placeQuery(place), fromSeq, toSeq };
    const part = await getJson<OutlineJson>(sessionPath(place, "/outline"), query, signal);
    outline.take(part);
    yield outline;
    if (part.columns.seq.length === 0 || outline.lastLoaded >= outline.lastSeq) return;
    toSeq = null;
  }
}
