import type { FormatWriter, WriteOptions, WrittenSession } from "./format-writer.ts";

/** What stands before and behind the list of a document. */
interface DocumentFrame {
  readonly head: string;
  readonly tail: string;
}

/** A writer of JSON documents that hold what a model would be sent now. `elements` gives the elements of their list. */
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
    resume: null,
  };
}
