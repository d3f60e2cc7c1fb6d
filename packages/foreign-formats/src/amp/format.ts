import type { Fields } from "@throughline/core/internal";
import type { ForeignFormat, FormatSample } from "../foreign-format.ts";
import { createListReader } from "../message-list.ts";
import { documentIn } from "../sample-units.ts";
import { AmpMessages, isThreadId } from "./amp-messages.ts";

const lists = [["messages"]];

/** The format covers Amp's threads, `threads/<thread id>.json`. The program writes the whole file at each change. */
export const ampFormat: ForeignFormat = {
  name: "amp",
  program: "Amp",
  layout: () => ({ unit: "document", lists, sessions: null }),
  // The program changes a message while its tools run, and an import refuses that. So no search takes a thread.
  places: [],
  detect: (sample) => (isThread(sample) ? "certain" : null),
  createReader: (options) => createListReader(new AmpMessages(options.path ?? null), options),
  resume: (sessionId) => ["amp", "threads", "continue", sessionId],
};

function isThread(sample: FormatSample): boolean {
  const document = documentIn(sample, lists);
  if (document === null || !document.elements.every(isMessage)) return false;
  const { id, v: version, created } = { ...document.head, ...document.tail };
  return isThreadId(id) && (typeof version === "number" || typeof created === "number");
}

function isMessage({ role }: Fields): boolean {
  return typeof role === "string";
}
