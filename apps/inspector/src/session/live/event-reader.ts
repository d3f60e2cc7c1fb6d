export interface StreamEvent {
  readonly name: string;
  /** Is `SESSIONID/SEQ` for a record, and empty for other events. */
  readonly id: string;
  readonly data: string;
}

/** An event holds one record. A stream that never ends one is not read further. */
const mostCharacters = 64 * 1024 * 1024;

/** Reads server-sent events, as they arrive. @throws {RangeError} for an event above 64 Mi characters */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent, void, void> {
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  let pieces: string[] = [];
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      // The end of an event may lie between two pieces, so the last piece is looked at together with the new one.
      const text = (pieces.pop() ?? "") + value;
      const end = text.lastIndexOf("\n\n");
      length += value.length;
      if (length > mostCharacters) throw new RangeError("An event of the server is too large.");
      if (end === -1) {
        pieces.push(...halves(text));
        continue;
      }
      for (const block of (pieces.join("") + text.slice(0, end)).split("\n\n")) yield eventOf(block);
      pieces = [text.slice(end + 2)];
      length = text.length - end - 2;
    }
  } finally {
    // Without this, the connection stays open.
    void reader.cancel().catch(() => undefined);
  }
}

/** Keeps the last character apart, so that a long event is not copied with each piece of it. */
function halves(text: string): readonly string[] {
  return text.length < 2 ? [text] : [text.slice(0, -1), text.slice(-1)];
}

function eventOf(block: string): StreamEvent {
  let name = "message";
  let id = "";
  const data: string[] = [];
  for (const line of block.split("\n"))
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("id: ")) id = line.slice(4);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
  return { name, id, data: data.join("\n") };
}
