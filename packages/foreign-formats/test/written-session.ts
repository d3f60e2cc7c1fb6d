import { foreignFormats } from "@throughline/foreign-formats";
import type { ForeignFormatName } from "../src/names.ts";
import type { FormatLoss } from "../src/format-writer.ts";
import type { ReadSession } from "./read-units.ts";

/** A session as a format writes it. */
export interface WrittenText {
  readonly text: string;
  /** What was reported, in the order of the report. */
  readonly losses: readonly string[];
}

const place = { sessionId: "s1", cwd: "/home/u", label: null, title: null, createdAtMs: 1000 };

/** Writes a session that was read as a text of another format. */
export function writtenText(name: ForeignFormatName, { records, headId }: ReadSession): WrittenText {
  const writer = foreignFormats.get(name)?.writer;
  if (writer?.isText !== true) throw new Error(`${name} writes no texts`);
  const losses: FormatLoss[] = [];
  const pieces = [...writer.write({ ...place, records, headId }, { onLoss: (loss) => losses.push(loss) })];
  return { text: pieces.join(""), losses: losses.map(({ what, kind }) => `${what} ${kind}`) };
}

/** Writes a session that was read as a document of another format. */
export function writtenDocument(name: ForeignFormatName, { records, headId }: ReadSession): WrittenText {
  const writer = foreignFormats.get(name)?.writer;
  if (writer?.frame === undefined) throw new Error(`${name} writes no documents`);
  const session = { ...place, records, headId };
  const losses: FormatLoss[] = [];
  const { head, tail } = writer.frame(session);
  const pieces = [...writer.write(session, { onLoss: (loss) => losses.push(loss) })];
  const elements = pieces.filter((text) => text !== undefined);
  return { text: `${head}${elements.join(",\n")}${tail}`, losses: losses.map(({ what, kind }) => `${what} ${kind}`) };
}
