/** Holds one event of a server-sent event stream. */
export interface ServerEvent {
  /** States the event's name; `message` when the stream names none. */
  readonly event: string;
  /** States the last event id in the stream so far; empty before the first. */
  readonly id: string;
  /** Holds the data lines, joined by line feeds. */
  readonly data: string;
}

/** Limits a line to 64 Mi characters, so that a foreign stream without line ends cannot fill the memory. */
const longestLine = 64 * 1024 * 1024;

/**
 * Reads a server-sent event stream by the HTML standard. Lines end with LF, CR or CRLF. Comments and an incomplete last
 * event are skipped.
 *
 * @throws what the stream throws; Error for a line of more than 64 MiB
 */
export async function* readEvents(stream: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent, void, void> {
  let [id, event] = ["", ""];
  let data: string[] = [];
  for await (const line of linesOf(stream)) {
    if (line === "") {
      if (data.length > 0) yield { event: event === "" ? "message" : event, id, data: data.join("\n") };
      event = "";
      data = [];
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") data.push(value);
    else if (field === "event") event = value;
    else if (field === "id" && !value.includes("\0")) id = value;
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  let rest = "";
  let isAfterReturn = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      let text = decoder.decode(value, { stream: true });
      if (isAfterReturn && text.startsWith("\n")) text = text.slice(1);
      if (text === "") continue;
      isAfterReturn = text.endsWith("\r");
      const lines = text.split(/\r\n|\n|\r/);
      const last = lines.pop() ?? "";
      for (const line of lines) {
        yield rest + line;
        rest = "";
      }
      // The engine concatenates strings lazily, so a line in many chunks is not copied once per chunk.
      rest += last;
      if (rest.length > longestLine)
        throw new Error(`A line of the event stream has more than ${longestLine} characters.`);
    }
  } finally {
    // A consumer that leaves the loop early must close the connection.
    await reader.cancel().catch(() => undefined);
  }
}
