/** An event of a stream: its name and its data. */
export interface StreamEvent {
  /** The event's name; empty where the stream names none. */
  readonly name: string;
  /** Its data, the lines joined. */
  readonly data: string;
}

/** The events of a stream of server-sent events. An event that is not ended by an empty line is no event yet. */
export function readEvents(text: string): readonly StreamEvent[] {
  const events: StreamEvent[] = [];
  let name = "";
  let data: string[] = [];
  for (const line of linesOf(text)) {
    if (line === "") {
      if (data.length > 0) events.push({ name, data: data.join("\n") });
      name = "";
      data = [];
    } else if (line.startsWith("data:")) data.push(valueOf(line, 5));
    else if (line.startsWith("event:")) name = valueOf(line, 6);
  }
  return events;
}

/** The lines that are ended, by LF, CR LF or CR alone. */
export function* linesOf(text: string): Generator<string, void, void> {
  let from = text.startsWith("\uFEFF") ? 1 : 0;
  while (from < text.length) {
    const feed = text.indexOf("\n", from);
    const own = text.slice(from, feed === -1 ? text.length : feed);
    if (own.includes("\r")) {
      const parts = (feed !== -1 && own.endsWith("\r") ? own.slice(0, -1) : own).split("\r");
      // Behind the last CR stands the beginning of a line that is not ended.
      yield* feed === -1 ? parts.slice(0, -1) : parts;
    } else if (feed !== -1) yield own;
    if (feed === -1) return;
    from = feed + 1;
  }
}

function valueOf(line: string, from: number): string {
  return line[from] === " " ? line.slice(from + 1) : line.slice(from);
}
