/** Holds one server-sent event. */
export interface StreamEvent {
  /** States the name of the event; empty when the stream states none. */
  readonly name: string;
  /** Holds the data of the event, with its lines joined by line feeds. */
  readonly data: string;
}

/** Parses a stream of server-sent events. An event without its closing empty line is incomplete and left out. */
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

/** Yields the complete lines. LF, CR LF and a lone CR end a line. */
export function* linesOf(text: string): Generator<string, void, void> {
  let from = text.startsWith("\uFEFF") ? 1 : 0;
  while (from < text.length) {
    const feed = text.indexOf("\n", from);
    const own = text.slice(from, feed === -1 ? text.length : feed);
    if (own.includes("\r")) {
      const parts = (feed !== -1 && own.endsWith("\r") ? own.slice(0, -1) : own).split("\r");
      // The text after the last CR is the start of an incomplete line.
      yield* feed === -1 ? parts.slice(0, -1) : parts;
    } else if (feed !== -1) yield own;
    if (feed === -1) return;
    from = feed + 1;
  }
}

function valueOf(line: string, from: number): string {
  return line[from] === " " ? line.slice(from + 1) : line.slice(from);
}
