import type { FormatWriter, WriteOptions, WrittenSession } from "./format-writer.ts";

interface DocumentFrame {
  readonly head: string;
  readonly tail: string;
}

/** Such documents hold the messages that a model would get now. `elements` yields the elements of the list. */
export function documentWriter(
  frame: DocumentFrame | ((session: WrittenSession) => DocumentFrame),
  elements: (session: WrittenSession, options: WriteOptions) => Iterable<object | undefined>,
): FormatWriter {
  return {
    writesHistory: false,
    *write(session, options) {
      for (const element of elements(session, options))
        yield element === undefined ? undefined : JSON.stringify(element);
    },
    frame: typeof frame === "function" ? frame : () => frame,
    sessionId: ({ sessionId }) => sessionId,
    path: ({ sessionId }) => [`${sessionId}.json`],
  };
}
